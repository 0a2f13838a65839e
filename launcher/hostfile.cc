#include "launcher/hostfile.h"

#include <algorithm>
#include <utility>

#include "base/parse_number.h"
#include "launcher/host_entry.h"
#include "launcher/host_list_builder.h"
#include "launcher/host_range.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

// "slots = 4" and "slots=4" are the same to those who wrote hostfiles for other launchers.
class LineScanner {
 public:
  // The words without their quotes, up to the comment.
  static Result<std::vector<std::string>> scan(std::string_view line) {
    LineScanner scanner;
    for (const char c : line) {
      if (c == '#' && scanner.quote_ == 0) break;
      scanner.take(c);
    }
    if (scanner.quote_ != 0) {
      return make_error(ExitCode::kUsage, "a quote is not closed; close it");
    }
    scanner.end_word();
    return std::move(scanner.words_);
  }

 private:
  void take(char c) {
    if (quote_ != 0) {
      if (c == quote_) {
        quote_ = 0;
      } else {
        word_ += c;
      }
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      begin_word();
    } else if (c == ' ' || c == '\t') {
      is_blank_ = true;
    } else {
      take_plain(c);
    }
  }

  void take_plain(char c) {
    // The first '=' of a word joins what blanks had parted.
    const bool joins = c == '=' && is_in_word_ && word_.find('=') == std::string::npos;
    if (joins) is_blank_ = false;
    begin_word();
    word_ += c;
    is_after_equals_ = joins;
  }

  void begin_word() {
    if (is_blank_ && !is_after_equals_) end_word();
    is_blank_ = false;
    is_after_equals_ = false;
    is_in_word_ = true;
  }

  void end_word() {
    if (is_in_word_) words_.push_back(std::exchange(word_, {}));
    is_in_word_ = false;
  }

  std::vector<std::string> words_;
  std::string word_;
  char quote_ = 0;  // the open one
  bool is_in_word_ = false;
  bool is_blank_ = false;  // since the last character of a word
  bool is_after_equals_ = false;
};

// A host while its line is read.
struct Line {
  HostSpec host;
  std::optional<std::uint32_t> max_slots;
};

bool is_variable_name(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_name_char = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
  };
  return !name.empty() && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(), is_name_char);
}

// Values are never told: they may be secrets.
Result<void> set_env(HostSpec& host, std::string_view name, std::string_view value) {
  if (!is_variable_name(name)) {
    return make_error(ExitCode::kUsage,
                      "env.{} names no variable; write env.NAME=VALUE with letters, digits and '_' "
                      "in NAME",
                      name);
  }
  if (find_env(host.env, name)) {
    return make_error(ExitCode::kUsage, "env.{} is given twice; give it once", name);
  }
  host.env.emplace_back(name, value);
  return {};
}

Result<void> set_max_slots(Line& line, std::string_view value) {
  line.max_slots = parse_number<std::uint32_t>(value);
  if (line.max_slots) return {};
  return make_error(ExitCode::kUsage, "\"max_slots={}\" is no number of slots", value);
}

Result<void> set_key(HostSpec& host, std::string_view value) {
  if (value.empty() || !host.key.empty()) {
    return make_error(ExitCode::kUsage, "\"key={}\" is no single key file; name one", value);
  }
  host.key = value;
  return {};
}

Result<void> apply_key(Line& line, std::string_view word) {
  constexpr std::string_view kEnv = "env.";
  const auto equals = word.find('=');
  const auto key = word.substr(0, equals);
  const auto value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  HostSpec& host = line.host;
  if (equals != std::string_view::npos) {
    if (key == "slots") return set_slots(host, value);
    if (key == "max_slots" || key == "max-slots") return set_max_slots(line, value);
    if (key == "user" || key == "username") return set_user(host, value);
    if (key == "port") return set_port(host, value);
    if (key == "key") return set_key(host, value);
    if (key == "gpus") return set_gpus(host, value);
    if (key.starts_with(kEnv)) return set_env(host, key.substr(kEnv.size()), value);
    if (key == "binding" || key == "ifname") return {};  // MPICH's own; --bind says it for all
  }
  return make_error(ExitCode::kUsage,
                    "{} is not known here; write one host a line, as in node1 slots=8; there are "
                    "slots, max_slots, user, port, key, gpus and env.NAME",
                    show(key));
}

Result<void> check_slots(const Line& line) {
  const HostSpec& host = line.host;
  if (!line.max_slots || !host.slots || *host.slots <= *line.max_slots) return {};
  return make_error(ExitCode::kUsage, "host {} has {} slots and at most {}; lower slots",
                    host.label(), *host.slots, *line.max_slots);
}

Result<void> add_line(std::string_view text, HostListBuilder& builder) {
  const auto words = LineScanner::scan(text);
  if (!words) return tl::unexpected(words.error());
  if (words->empty()) return {};
  const auto items = split_host_items(words->front());
  auto hosts = parse_host_entry(items.front(), {items.begin() + 1, items.end()});
  if (!hosts) return tl::unexpected(hosts.error());
  for (HostSpec& host : *hosts) {
    Line line{std::move(host), std::nullopt};
    for (std::size_t i = 1; i < words->size(); ++i) {
      if (auto applied = apply_key(line, (*words)[i]); !applied) return applied;
    }
    if (auto checked = check_slots(line); !checked) return checked;
    if (auto added = builder.add(std::move(line.host)); !added) return added;
  }
  return {};
}

}  // namespace

Result<std::vector<HostSpec>> parse_hostfile(std::string_view text, std::string_view path,
                                             std::vector<std::string>* notes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  HostListBuilder builder(notes);
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const auto end = std::min(text.find_first_of("\r\n", at), text.size());
    const auto added = add_line(text.substr(at, end - at), builder);
    if (!added) return tl::unexpected(added.error().within(fmt::format("{}:{}", path, number)));
    at = end + (text.substr(end, 2) == "\r\n" ? 2 : 1);
  }
  auto hosts = builder.finish();
  if (!hosts) return tl::unexpected(hosts.error().within(path));
  return hosts;
}

}  // namespace hvd
