#include "agent/service_config.h"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <utility>

#include "base/parse_number.h"
#include "base/read_file.h"
#include "proto/peer_identity.h"

namespace hvd {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTls = "tls:";

std::optional<TcpPlace> parse_tcp_place(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view address = text.substr(0, colon);
  const bool is_bracketed = address.starts_with('[') && address.ends_with(']');
  if (is_bracketed) address = address.substr(1, address.size() - 2);
  if (is_bracketed != (address.find(':') != std::string_view::npos)) return std::nullopt;
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  TcpPlace place{std::string(address), port.value_or(0)};
  if (place.port == 0 || !is_ip_address(place.address)) return std::nullopt;
  return place;
}

// What is wrong with the value of a key, or where it stands.
struct Reader {
  const std::string& file;
  ServiceConfig config = {};

  [[nodiscard]] tl::unexpected<Error> wrong(const YAML::Node& node, const std::string& why) const {
    return make_error(ExitCode::kUsage, "{}:{}: {}", file, node.Mark().line + 1, why);
  }

  // One text, or a list of them.
  Result<std::vector<std::pair<std::string, YAML::Node>>> texts(const YAML::Node& node,
                                                                const std::string& key) const {
    std::vector<std::pair<std::string, YAML::Node>> all;
    if (node.IsScalar()) return decltype(all){{node.Scalar(), node}};
    if (!node.IsSequence()) return wrong(node, key + " is a text or a list of texts");
    for (const YAML::Node& one : node) {
      if (!one.IsScalar()) return wrong(one, key + " is a list of texts");
      all.emplace_back(one.Scalar(), one);
    }
    return all;
  }

  Result<void> take_listen(const YAML::Node& node) {
    const auto places = texts(node, "listen");
    if (!places) return tl::unexpected(places.error());
    for (const auto& [text, place] : *places) {
      if (auto added = add_listen(config, text); !added) return wrong(place, added.error().message);
    }
    return {};
  }

  Result<void> take_tls(const YAML::Node& node) {
    if (!node.IsScalar() || !node.Scalar().starts_with('/')) {
      return wrong(node, "tls is the absolute path of a folder");
    }
    config.tls_folder = node.Scalar();
    return {};
  }

  // Names of users, of certificates or of the machine.
  Result<std::vector<std::string>> names(const YAML::Node& node, const std::string& key) const {
    const auto all = texts(node, key);
    if (!all) return tl::unexpected(all.error());
    std::vector<std::string> names;
    for (const auto& [name, place] : *all) {
      if (!is_identity_name(name)) {
        return wrong(place, fmt::format("{}: \"{}\" is no name of a user", key, name));
      }
      names.push_back(name);
    }
    return names;
  }

  Result<unsigned> count(const YAML::Node& node, const std::string& key) const {
    const auto number = node.IsScalar() ? parse_number<unsigned>(node.Scalar()) : std::nullopt;
    if (!number || *number == 0) return wrong(node, key + " is a whole number from 1 on");
    return *number;
  }

  Result<void> take_clients(const YAML::Node& node) {
    if (!node.IsMap()) {
      const auto all = names(node, "clients");
      if (!all) return tl::unexpected(all.error());
      for (const std::string& name : *all) config.clients.try_emplace(name);
      return {};
    }
    for (const auto& entry : node) {
      const auto name = names(entry.first, "clients");
      if (!name) return tl::unexpected(name.error());
      const auto [rule, is_new] = config.clients.try_emplace(name->front());
      if (!is_new) return wrong(entry.first, fmt::format("{} stands twice", name->front()));
      if (auto taken = take_rule(entry.second, rule->second); !taken) return taken;
    }
    return {};
  }

  Result<void> take_rule(const YAML::Node& node, ClientRule& rule) const {
    if (node.IsNull()) return {};
    if (!node.IsMap()) return wrong(node, "what a client may is written as {run_as: [build]}");
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (key == "run_as") {
        auto users = names(entry.second, key);
        if (!users) return tl::unexpected(users.error());
        rule.run_as = std::move(*users);
      } else if (key == "max_jobs") {
        const auto most = count(entry.second, key);
        if (!most) return tl::unexpected(most.error());
        rule.max_jobs = *most;
      } else {
        return wrong(entry.first, fmt::format("a client has no key {}; the keys are run_as and "
                                              "max_jobs",
                                              key));
      }
    }
    return {};
  }

  Result<void> take_admins(const YAML::Node& node) {
    const auto all = names(node, "admins");
    if (!all) return tl::unexpected(all.error());
    config.admins = {all->begin(), all->end()};
    return {};
  }

  Result<void> take_max_jobs(const YAML::Node& node) {
    const auto most = count(node, "max_jobs");
    if (!most) return tl::unexpected(most.error());
    config.max_jobs = *most;
    return {};
  }

  Result<void> take_busy_gpus(const YAML::Node& node) {
    const std::string word = node.IsScalar() ? node.Scalar() : "";
    if (word != "refuse" && word != "wait") return wrong(node, "busy_gpus is refuse or wait");
    config.waits_for_gpus = word == "wait";
    return {};
  }

  Result<void> take_log_level(const YAML::Node& node) {
    const std::string word = node.IsScalar() ? node.Scalar() : "";
    if (word == "warning") {
      config.log_level = LogLevel::kWarning;
    } else if (word == "debug") {
      config.log_level = LogLevel::kDebug;
    } else if (word != "info") {
      return wrong(node, "log_level is warning, info or debug");
    }
    return {};
  }

  Result<void> take(const YAML::Node& key, const YAML::Node& value) {
    using Taker = Result<void> (Reader::*)(const YAML::Node&);
    static const std::map<std::string_view, Taker> kKeys = {
        {"listen", &Reader::take_listen},       {"tls", &Reader::take_tls},
        {"clients", &Reader::take_clients},     {"admins", &Reader::take_admins},
        {"max_jobs", &Reader::take_max_jobs},   {"busy_gpus", &Reader::take_busy_gpus},
        {"log_level", &Reader::take_log_level},
    };
    const auto found = kKeys.find(key.Scalar());
    if (found != kKeys.end()) return (this->*found->second)(value);
    std::vector<std::string_view> names;
    for (const auto& [name, taker] : kKeys) names.push_back(name);
    return wrong(key, fmt::format("there is no key {}; the keys are {}", key.Scalar(),
                                  fmt::join(names, ", ")));
  }

  Result<void> take_all(const YAML::Node& document) {
    if (!document.IsMap()) return wrong(document, "a list of KEY: VALUE lines is wanted");
    std::set<std::string> seen;
    for (const auto& entry : document) {
      if (!entry.first.IsScalar()) return wrong(entry.first, "a key is a word");
      if (!seen.insert(entry.first.Scalar()).second) {
        return wrong(entry.first, fmt::format("{} stands twice", entry.first.Scalar()));
      }
      if (auto taken = take(entry.first, entry.second); !taken) return taken;
    }
    return {};
  }
};

Result<void> check_together(const ServiceConfig& config, const std::string& file) {
  if (config.socket.empty() && !config.tls) {
    return make_error(ExitCode::kUsage,
                      "{}: it says nowhere to listen; add listen: unix:/run/hvdrun/agent.sock",
                      file);
  }
  if (config.tls && config.tls_folder.empty()) {
    return make_error(
        ExitCode::kUsage,
        "{}: to listen with TLS it needs tls:, the folder that hvdctl ca issue --node "
        "has made",
        file);
  }
  if (config.tls && config.clients.empty()) {
    return make_error(ExitCode::kUsage,
                      "{}: nobody may come by TLS; name them, as in clients: [alice, bob]", file);
  }
  return {};
}

}  // namespace

Result<void> add_listen(ServiceConfig& config, std::string_view text) {
  if (text.starts_with(kUnix) && text.substr(kUnix.size()).starts_with('/')) {
    if (!config.socket.empty()) return make_error("a second unix socket; one is enough");
    config.socket = text.substr(kUnix.size());
    return {};
  }
  if (text.starts_with(kTls)) {
    const auto place = parse_tcp_place(text.substr(kTls.size()));
    if (place && config.tls) return make_error("a second TLS port; one is enough");
    config.tls = place;
    if (place) return {};
  }
  return make_error(
      "\"{}\" is no place to listen; write unix: and an absolute path, as in "
      "unix:/run/hvdrun/agent.sock, or tls: with address and port, as in tls:[::]:50451",
      text);
}

Result<ServiceConfig> parse_service_config(const std::string& text, const std::string& file) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() != 1) {
      return make_error(ExitCode::kUsage, "{}: one document is wanted, not {}", file,
                        documents.size());
    }
    Reader reader{file};
    if (auto taken = reader.take_all(documents.front()); !taken) {
      return tl::unexpected(taken.error());
    }
    if (auto fits = check_together(reader.config, file); !fits) {
      return tl::unexpected(fits.error());
    }
    return std::move(reader.config);
  } catch (const YAML::Exception& error) {
    return make_error(ExitCode::kUsage, "{}:{}: {}", file, error.mark.line + 1, error.msg);
  }
}

Result<ServiceConfig> read_service_config(const std::string& file) {
  const std::string text = read_small_file(file);
  if (!text.empty()) return parse_service_config(text, file);
  return make_error(ExitCode::kUsage, "--config {}: it cannot be read, or is empty", file);
}

}  // namespace hvd
