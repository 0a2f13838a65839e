#include "training/petrv2/synth/table_reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "training/formats/mapped_file.h"

namespace hvd::petrv2 {
namespace {

using nlohmann::json;

constexpr const char* kRemedy =
    "the table is damaged or not of nuScenes v1.0; unpack the archive with its tables again";

// Follows the parser through the array and takes every finished object away from it.
class EntryFeed {
 public:
  explicit EntryFeed(const std::function<void(TableEntry&)>& take) : take_(take) {}

  // Whether the parser keeps what it has just seen.
  bool on_event(int depth, json::parse_event_t event, const json& value) {
    using Event = json::parse_event_t;
    if (depth == 0) return is_array_ = is_array_ || event == Event::array_start;
    if (depth > 1) return true;
    if (event == Event::object_start) return !fault_;  // after a fault nothing more is built
    if (event == Event::object_end) return take(value);
    if (event == Event::value || event == Event::array_start) refuse("is no object");
    return false;
  }

  [[nodiscard]] const std::optional<std::string>& fault() const { return fault_; }
  [[nodiscard]] bool is_array() const { return is_array_; }

 private:
  bool take(const json& object) {
    if (fault_) return false;
    TableEntry entry(object, num_entries_);
    take_(entry);
    if (entry.fault()) refuse(*entry.fault());
    ++num_entries_;
    return false;
  }

  void refuse(const std::string& what) {
    if (!fault_) fault_ = fmt::format("entry {} {}", num_entries_, what);
  }

  const std::function<void(TableEntry&)>& take_;
  std::optional<std::string> fault_;
  std::size_t num_entries_ = 0;
  bool is_array_ = false;
};

}  // namespace

const json* TableEntry::find(const char* key) {
  const auto found = object_.find(key);
  if (found != object_.end()) return &*found;
  reject(fmt::format("has no \"{}\"; {}", key, kRemedy));
  return nullptr;
}

void TableEntry::reject(std::string what) {
  if (!fault_) fault_ = std::move(what);
}

std::string TableEntry::text(const char* key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  reject(fmt::format("has a \"{}\" that is no text; {}", key, kRemedy));
  return {};
}

std::int64_t TableEntry::integer(const char* key) {
  const json* value = find(key);
  if (value == nullptr) return 0;
  if (value->is_number_integer()) return value->get<std::int64_t>();
  reject(fmt::format("has a \"{}\" that is no whole number; {}", key, kRemedy));
  return 0;
}

bool TableEntry::flag(const char* key) {
  const json* value = find(key);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  reject(fmt::format("has a \"{}\" that is neither true nor false; {}", key, kRemedy));
  return false;
}

std::optional<Token> TableEntry::token_if_any(const char* key) {
  const std::string digits = text(key);
  if (digits.empty()) return std::nullopt;
  const auto token = parse_token(digits);
  if (!token) reject(fmt::format("has a \"{}\" of other than 32 hex digits; {}", key, kRemedy));
  return token;
}

Token TableEntry::token(const char* key) {
  const auto token = token_if_any(key);
  if (!token) reject(fmt::format("has an empty \"{}\"; {}", key, kRemedy));
  return token.value_or(Token{});
}

std::array<double, 9> TableEntry::matrix3(const char* key) {
  std::array<double, 9> values{};
  const json* rows = find(key);
  if (rows == nullptr) return values;
  bool is_good = rows->is_array() && rows->size() == 3;
  for (std::size_t row = 0; is_good && row < 3; ++row) {
    is_good = read_number_list((*rows)[row], values.data() + 3 * row, 3);
  }
  if (!is_good) reject(fmt::format("has a \"{}\" that is no 3 x 3 matrix; {}", key, kRemedy));
  return values;
}

bool TableEntry::read_number_list(const json& list, double* values, std::size_t count) {
  if (!list.is_array() || list.size() != count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!list[i].is_number()) return false;
    values[i] = list[i].get<double>();
    if (!std::isfinite(values[i])) return false;
  }
  return true;
}

void TableEntry::read_numbers(const char* key, double* values, std::size_t count) {
  const json* list = find(key);
  if (list == nullptr || read_number_list(*list, values, count)) return;
  std::fill_n(values, count, 0.0);
  reject(fmt::format("has a \"{}\" that is no list of {} numbers; {}", key, count, kRemedy));
}

std::uint32_t TableEntry::reference(const char* key, const TokenIndex& index,
                                    std::string_view table) {
  const Token wanted = token(key);
  if (fault_) return 0;
  const auto found = index.find(wanted);
  if (found) return *found;
  reject(
      fmt::format("has the \"{}\" {}, which is in no entry of {}; the tables are incomplete or "
                  "of different versions, unpack the archive with its tables again",
                  key, wanted.text(), table));
  return 0;
}

Result<void> read_table(const std::string& path, const std::function<void(TableEntry&)>& take) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return make_error(
        "{} is missing; unpack the nuScenes archive with its tables there, or name "
        "another --dataroot or --version",
        path);
  }
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  EntryFeed feed(take);
  try {
    const json rest = json::parse(file->bytes(), [&](int depth, auto event, json& value) {
      return feed.on_event(depth, event, value);
    });
  } catch (const json::parse_error& error) {
    return make_error("{} is no JSON from byte {} on; {}", path, error.byte, kRemedy);
  }
  if (feed.fault()) return make_error("{}: {}", path, *feed.fault());
  if (!feed.is_array()) return make_error("{} is no list of entries; {}", path, kRemedy);
  return {};
}

}  // namespace hvd::petrv2
