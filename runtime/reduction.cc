#include "runtime/reduction.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/half_float.h"

namespace hvd {
namespace {

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

// Signed overflow is undefined; the sum of integers wraps.
template <typename T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping_sum(a, b);
  }
};
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return (a < b) | (a != a) ? a : b;  // NOLINT: a NaN is unlike itself
  }
};
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return (a > b) | (a != a) ? a : b;  // NOLINT: a NaN is unlike itself
  }
};

// `out` is disjoint from the inputs or equal to one of them, so no step of a loop needs the result
// of an earlier one: that is what ivdep says to the compiler.
template <typename T, typename Op>
void combine(void* out, const void* low, const void* high, std::size_t count) {
  T* const to = static_cast<T*>(out);
  const T* const a = static_cast<const T*>(low);
  const T* const b = static_cast<const T*>(high);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = Op::apply(a[i], b[i]);
}

template <typename Accumulator, typename Element>
Accumulator widened(Element element) {
  if constexpr (kIsHalf<Element>) {
    return to_float(element);
  } else {
    return static_cast<Accumulator>(element);
  }
}

template <typename Element, typename Accumulator>
Element narrowed(Accumulator value) {
  if constexpr (std::is_same_v<Element, Float16>) {
    return to_float16(value);
  } else if constexpr (std::is_same_v<Element, Bfloat16>) {
    return to_bfloat16(value);
  } else {
    return static_cast<Element>(value);
  }
}

template <typename Element, typename Accumulator>
void load(void* accumulators, const void* elements, std::size_t count, double prescale) {
  Accumulator* const to = static_cast<Accumulator*>(accumulators);
  const Element* const from = static_cast<const Element*>(elements);
  if constexpr (std::is_floating_point_v<Accumulator>) {
    if (prescale != 1) {
      const auto factor = static_cast<Accumulator>(prescale);
#pragma GCC ivdep
      for (std::size_t i = 0; i < count; ++i) to[i] = widened<Accumulator>(from[i]) * factor;
      return;
    }
  }
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = widened<Accumulator>(from[i]);
}

template <typename Element, typename Accumulator>
void store(void* elements, const void* accumulators, std::size_t count, int divisor) {
  Element* const to = static_cast<Element*>(elements);
  const Accumulator* const from = static_cast<const Accumulator*>(accumulators);
  if (divisor == 1) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) to[i] = narrowed<Element>(from[i]);
    return;
  }
  const auto by = static_cast<Accumulator>(divisor);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = narrowed<Element>(static_cast<Accumulator>(from[i] / by));
  }
}

template <typename Element, typename Accumulator>
ReductionPlan plan_for(const Reduction& reduction, int num_ranks) {
  ReductionPlan plan;
  plan.element_size = sizeof(Element);
  plan.accumulator_size = sizeof(Accumulator);
  plan.is_in_place = std::is_same_v<Element, Accumulator>;
  plan.prescale = reduction.prescale;
  plan.divisor = reduction.op == ReduceOp::kAverage ? num_ranks : 1;
  plan.has_load = !plan.is_in_place || plan.prescale != 1;
  plan.has_store = !plan.is_in_place || plan.divisor != 1;
  plan.load_function = load<Element, Accumulator>;
  plan.store_function = store<Element, Accumulator>;
  switch (reduction.op) {
    case ReduceOp::kMin:
      plan.combine = combine<Accumulator, Min>;
      break;
    case ReduceOp::kMax:
      plan.combine = combine<Accumulator, Max>;
      break;
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      plan.combine = combine<Accumulator, Sum>;
      break;
  }
  return plan;
}

bool is_integer(DataType type) {
  return type == DataType::kInt32 || type == DataType::kInt64 || type == DataType::kUint8;
}

}  // namespace

Result<ReductionPlan> plan_reduction(DataType type, const Reduction& reduction, int num_ranks) {
  if (is_integer(type) && reduction.prescale != 1) {
    return make_error("a prescale of {} is not defined for {}: integers are reduced unscaled",
                      reduction.prescale, name_of(type));
  }
  const bool is_average = reduction.op == ReduceOp::kAverage;
  switch (type) {
    case DataType::kFloat64:
      return plan_for<double, double>(reduction, num_ranks);
    case DataType::kFloat32:
      return plan_for<float, float>(reduction, num_ranks);
    case DataType::kFloat16:
      return plan_for<Float16, float>(reduction, num_ranks);
    case DataType::kBfloat16:
      return plan_for<Bfloat16, float>(reduction, num_ranks);
    case DataType::kInt32:
      return is_average ? plan_for<std::int32_t, std::int64_t>(reduction, num_ranks)
                        : plan_for<std::int32_t, std::int32_t>(reduction, num_ranks);
    case DataType::kInt64:
      return plan_for<std::int64_t, std::int64_t>(reduction, num_ranks);
    case DataType::kUint8:
      return is_average ? plan_for<std::uint8_t, std::int32_t>(reduction, num_ranks)
                        : plan_for<std::uint8_t, std::uint8_t>(reduction, num_ranks);
  }
  return make_error("{} is no data type", static_cast<int>(type));
}

}  // namespace hvd
