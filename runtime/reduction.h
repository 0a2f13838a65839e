// The arithmetic of reductions: which type a reduction accumulates in, and the loops over elements.
// Pure; no thread of its own. Loops are written to be vectorised (the file is compiled with -O3).
//
// A reduction takes three steps: load (element -> accumulator, times prescale), combine (two
// accumulators), store (accumulator -> element; divides for an average, rounds once).
#pragma once

#include <cstddef>

#include "hvdrun/communicator.h"

namespace hvd {

struct ReductionPlan {
  std::size_t element_size = 0;
  std::size_t accumulator_size = 0;

  // Whether elements are accumulators, so that data may be combined where it lies.
  bool is_in_place = false;
  // Whether load and store, too, change nothing.
  bool has_load = false;
  bool has_store = false;

  // Counts are in elements. Pointers are aligned for their type.
  void (*load_function)(void* accumulators, const void* elements, std::size_t count,
                        double prescale) = nullptr;
  // out = op(low, high), where `low` holds the part of the ranks that come first in the order; out
  // may be low or high.
  void (*combine)(void* out, const void* low, const void* high, std::size_t count) = nullptr;
  void (*store_function)(void* elements, const void* accumulators, std::size_t count,
                         int divisor) = nullptr;

  double prescale = 1;
  int divisor = 1;

  // In place (accumulators == elements) only where is_in_place.
  void load(void* accumulators, const void* elements, std::size_t count) const {
    load_function(accumulators, elements, count, prescale);
  }
  void store(void* elements, const void* accumulators, std::size_t count) const {
    store_function(elements, accumulators, count, divisor);
  }
};

// An error where the reduction is not defined: integers with a prescale.
[[nodiscard]] Result<ReductionPlan> plan_reduction(DataType type, const Reduction& reduction,
                                                   int num_ranks);

}  // namespace hvd
