// The key-value store by which Horovod's Gloo ranks find each other, as horovodrun offers it:
// scopes of keys with raw bytes. Pure: a request goes in, its answer comes out.
//
// A declared scope has a size, the number of its ranks. DELETE says there that the rank which is
// its key has finished; once all have, the values go, so that the scope can be used again
// (hvd.init() after hvd.shutdown()). Each rank counts once, because a client repeats a request
// whose answer was lost. Scopes come into being by a PUT, too (process sets); there DELETE takes
// its key away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct HorovodScope {
  std::string name;        // "global", "local_HOST", "cross_LOCAL-RANK"
  std::uint32_t size = 0;  // ranks
};

struct HorovodAnswer {
  unsigned status = 200;  // of HTTP
  std::string body{};
};

class HorovodStore {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  // `most_bytes`: of all names and values together; a PUT beyond them is refused with 413.
  explicit HorovodStore(const std::vector<HorovodScope>& declared,
                        std::size_t most_bytes = kMostBytes);

  // GET, PUT or DELETE of "/SCOPE/KEY", where nothing is decoded. GET of what is not there: 404, at
  // once; another method 501; another target 400.
  [[nodiscard]] HorovodAnswer answer(std::string_view method, std::string_view target,
                                     std::string body);

  [[nodiscard]] std::size_t num_bytes() const { return num_bytes_; }

 private:
  struct Scope {
    std::optional<std::uint32_t> size;  // nullopt: not declared
    std::map<std::string, std::string, std::less<>> values;
    std::set<std::uint32_t> finished;  // ranks
  };
  using Scopes = std::map<std::string, Scope, std::less<>>;

  [[nodiscard]] HorovodAnswer get(std::string_view scope, std::string_view key) const;
  [[nodiscard]] HorovodAnswer put(std::string_view scope, std::string_view key, std::string value);
  void finish(std::string_view scope, std::string_view key);
  void take_away(Scope& scope, std::string_view key);
  void empty(Scope& scope);

  const std::size_t most_bytes_;
  Scopes scopes_;
  std::size_t num_bytes_ = 0;
};

}  // namespace hvd
