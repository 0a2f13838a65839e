// Reads one nuScenes JSON table, an array of objects, entry by entry: the largest (sample_data of
// trainval, 2.6 million entries, over 1 GB of text) is never held as a whole.
//
// An entry keeps the first thing that is wrong with it and gives harmless values from then on, so a
// reader takes all its fields in a row and read_table() reports, in one sentence with the file, the
// entry's number (from 0) and the remedy. Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "training/petrv2/synth/token.h"

namespace hvd::petrv2 {

class TableEntry {
 public:
  // Both must outlive the entry.
  TableEntry(const nlohmann::json& object, std::size_t number) : object_(object), number_(number) {}

  [[nodiscard]] std::size_t number() const { return number_; }

  [[nodiscard]] std::string text(const char* key);
  [[nodiscard]] std::int64_t integer(const char* key);
  [[nodiscard]] bool flag(const char* key);
  [[nodiscard]] Token token(const char* key);
  // nullopt for the empty string, which ends a chain.
  [[nodiscard]] std::optional<Token> token_if_any(const char* key);
  // An array of exactly N finite numbers.
  template <std::size_t N>
  [[nodiscard]] std::array<double, N> numbers(const char* key) {
    std::array<double, N> values{};
    read_numbers(key, values.data(), N);
    return values;
  }
  // Three rows of three finite numbers.
  [[nodiscard]] std::array<double, 9> matrix3(const char* key);

  // The entry of `table` that the token under `key` names.
  [[nodiscard]] std::uint32_t reference(const char* key, const TokenIndex& index,
                                        std::string_view table);

  // Rejects the entry: "entry 3: WHAT". Only the first call counts.
  void reject(std::string what);
  [[nodiscard]] const std::optional<std::string>& fault() const { return fault_; }

 private:
  [[nodiscard]] const nlohmann::json* find(const char* key);
  void read_numbers(const char* key, double* values, std::size_t count);
  bool read_number_list(const nlohmann::json& list, double* values, std::size_t count);

  const nlohmann::json& object_;
  std::size_t number_;
  std::optional<std::string> fault_;
};

// Hands every entry of the file to `take`, in order; stops handing at the first fault.
[[nodiscard]] Result<void> read_table(const std::string& path,
                                      const std::function<void(TableEntry&)>& take);

}  // namespace hvd::petrv2
