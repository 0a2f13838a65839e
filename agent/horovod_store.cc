#include "agent/horovod_store.h"

#include <utility>

#include "base/parse_number.h"

namespace hvd {
namespace {

// What a value costs beside its bytes: so many empty ones cannot fill the memory either.
constexpr std::size_t kEntryBytes = 128;

std::size_t cost(std::string_view key, std::string_view value) {
  return kEntryBytes + key.size() + value.size();
}

struct Path {
  std::string_view scope;
  std::string_view key;
};

// "/SCOPE/KEY" and nothing else.
std::optional<Path> parse_path(std::string_view target) {
  if (target.empty() || target.front() != '/') return std::nullopt;
  target.remove_prefix(1);
  const std::size_t slash = target.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const Path path{target.substr(0, slash), target.substr(slash + 1)};
  const bool is_whole = !path.scope.empty() && !path.key.empty();
  if (!is_whole || path.key.find('/') != std::string_view::npos) return std::nullopt;
  return path;
}

}  // namespace

HorovodStore::HorovodStore(const std::vector<HorovodScope>& declared, std::size_t most_bytes)
    : most_bytes_(most_bytes) {
  for (const HorovodScope& scope : declared) scopes_[scope.name].size = scope.size;
}

HorovodAnswer HorovodStore::answer(std::string_view method, std::string_view target,
                                   std::string body) {
  if (method != "GET" && method != "PUT" && method != "DELETE") return {501};
  const auto path = parse_path(target);
  if (!path) return {400};
  if (method == "GET") return get(path->scope, path->key);
  if (method == "PUT") return put(path->scope, path->key, std::move(body));
  finish(path->scope, path->key);
  return {200};
}

HorovodAnswer HorovodStore::get(std::string_view scope, std::string_view key) const {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return {404};
  const auto value = found->second.values.find(key);
  if (value == found->second.values.end()) return {404};
  return {200, value->second};
}

HorovodAnswer HorovodStore::put(std::string_view scope, std::string_view key, std::string value) {
  const auto found = scopes_.find(scope);
  std::size_t held = 0;  // by what this overwrites
  if (found != scopes_.end()) {
    const auto old = found->second.values.find(key);
    if (old != found->second.values.end()) held = cost(key, old->second);
  }
  const std::size_t is_scope_new = found == scopes_.end() ? 1 : 0;
  const std::size_t wanted = cost(key, value) + is_scope_new * cost(scope, {});
  if (num_bytes_ - held + wanted > most_bytes_) return {413};
  num_bytes_ += wanted - held;
  scopes_[std::string(scope)].values[std::string(key)] = std::move(value);
  return {200};
}

void HorovodStore::finish(std::string_view scope, std::string_view key) {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return;
  Scope& known = found->second;
  if (known.size) {
    const auto rank = parse_number<std::uint32_t>(key);
    if (rank && *rank < *known.size) known.finished.insert(*rank);
    if (known.finished.size() >= *known.size) empty(known);
    return;
  }
  take_away(known, key);
  if (!known.values.empty()) return;
  num_bytes_ -= cost(scope, {});
  scopes_.erase(found);
}

void HorovodStore::take_away(Scope& scope, std::string_view key) {
  const auto value = scope.values.find(key);
  if (value == scope.values.end()) return;
  num_bytes_ -= cost(key, value->second);
  scope.values.erase(value);
}

void HorovodStore::empty(Scope& scope) {
  for (const auto& [key, value] : scope.values) num_bytes_ -= cost(key, value);
  scope.values.clear();
  scope.finished.clear();
}

}  // namespace hvd
