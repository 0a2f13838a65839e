#include "launcher/report_error_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/lines.h"
#include "launcher/folded_lines.h"

namespace hvd {
namespace {

using nlohmann::json;

// The member "message" of what torch's form is; null otherwise.
json message_of(std::string_view error_file) {
  auto file = json::parse(error_file, nullptr, /*allow_exceptions=*/false);
  return file.is_object() && file.contains("message") ? file["message"] : json();
}

json member(const json& message, const char* pointer) {
  const json::json_pointer path(pointer);
  return message.is_object() && message.contains(path) ? message[path] : json();
}

std::string text_in(const json& message, const char* pointer) {
  const json value = member(message, pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

std::string traceback_in(std::string_view error_file) {
  const json message = message_of(error_file);
  if (message.is_string()) return message.get<std::string>();
  const std::string traceback = text_in(message, "/extraInfo/py_callstack");
  return traceback.empty() ? text_in(message, "/message") : traceback;
}

std::vector<std::string> traceback_lines(std::string_view error_file) {
  const std::string text = traceback_in(error_file);
  std::string_view rest = text;
  std::vector<std::string> lines;
  while (!rest.empty()) lines.emplace_back(take_line(rest));
  return folded_lines(std::move(lines));
}

int received_signal_in(std::string_view error_file) {
  constexpr int kMostSignals = 64;
  const json value = member(message_of(error_file), "/extraInfo/signal");
  const auto number = value.is_number_integer() ? value.get<std::int64_t>() : 0;
  return number > 0 && number <= kMostSignals ? static_cast<int>(number) : 0;
}

}  // namespace hvd
