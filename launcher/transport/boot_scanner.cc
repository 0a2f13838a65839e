#include "launcher/transport/boot_scanner.h"

#include <algorithm>

namespace hvd {
namespace {

BootLine parse_line(std::string_view rest) {
  const std::size_t blank = rest.find(' ');
  const std::string_view word = rest.substr(0, blank);
  BootLine line;
  line.text = blank == std::string_view::npos ? "" : rest.substr(blank + 1);
  if (word == "found") line.kind = BootLine::Kind::kFound;
  if (word == "place") line.kind = BootLine::Kind::kPlace;
  if (word == "error") line.kind = BootLine::Kind::kError;
  if (word == "ready") line.kind = BootLine::Kind::kReady;
  return line;
}

}  // namespace

std::size_t BootScanner::take(std::string_view bytes, BootLine* line) {
  *line = {};
  const std::size_t before = pending_.size();
  pending_.append(bytes);
  const std::size_t start = pending_.find(marker_ + ' ');
  if (start == std::string::npos) {
    // The marker may be cut in two by the end of the bytes.
    drop_noise(pending_.size() - std::min(pending_.size(), marker_.size()));
    return bytes.size();
  }
  const std::size_t end = pending_.find('\n', start);
  if (end == std::string::npos) {
    drop_noise(pending_.size() - start > kMaxNoise ? pending_.size() : start);
    return bytes.size();
  }
  const std::size_t word = start + marker_.size() + 1;
  std::string_view rest = std::string_view(pending_).substr(word, end - word);
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  *line = parse_line(rest);
  const std::size_t taken = end + 1 - before;
  drop_noise(start);
  pending_.clear();
  return taken;
}

std::string BootScanner::noise() const {
  const std::size_t size = std::min(pending_.find(marker_), pending_.size());
  return noise_ + pending_.substr(0, std::min(size, kKeptNoise - noise_.size()));
}

void BootScanner::drop_noise(std::size_t size) {
  num_noise_bytes_ += size;
  noise_.append(pending_, 0, std::min(size, kKeptNoise - noise_.size()));
  pending_.erase(0, size);
}

}  // namespace hvd
