#include "proto/resume_engine.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

// What was acknowledged is cut off the front of the buffer when it is this much of it.
constexpr std::size_t kCompactAt = 1 << 18;

template <typename Number>
void put_number(std::string* out, Number number) {
  for (int shift = (sizeof(Number) - 1) * 8; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>((number >> shift) & 0xff));
  }
}

template <typename Number>
Number get_number(std::string_view bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number = static_cast<Number>((number << 8) | static_cast<unsigned char>(bytes[i]));
  }
  return number;
}

}  // namespace

void ResumeEngine::connect() {
  partial_.clear();
  owes_hello_ = true;
  is_hello_seen_ = false;
  is_ack_due_ = false;
}

std::size_t ResumeEngine::room() const {
  return is_end_given_ ? 0 : kMostKept - (kept_.size() - head_);
}

void ResumeEngine::give(std::string_view bytes) { kept_.append(bytes); }

void ResumeEngine::give_end() { is_end_given_ = true; }

Result<void> ResumeEngine::take_wire(std::string_view bytes) {
  partial_.append(bytes);
  std::size_t at = 0;
  while (partial_.size() - at >= kHeader) {
    const std::string_view rest = std::string_view(partial_).substr(at);
    const Header header{static_cast<Kind>(rest[0]), get_number<std::uint32_t>(rest.substr(1)),
                        get_number<std::uint64_t>(rest.substr(5))};
    if (header.size > (header.kind == Kind::kData ? kMostData : 0)) {
      return make_error("a frame of kind {} with {} bytes came",
                        static_cast<unsigned char>(rest[0]), header.size);
    }
    if (rest.size() < kHeader + header.size) break;
    if (auto taken = take_frame(header, rest.substr(kHeader, header.size)); !taken) return taken;
    at += kHeader + header.size;
  }
  partial_.erase(0, at);
  return {};
}

Result<void> ResumeEngine::take_frame(const Header& header, std::string_view data) {
  if ((header.kind == Kind::kHello) == is_hello_seen_) {
    return make_error("a connection begins with one greeting");
  }
  switch (header.kind) {
    case Kind::kHello:
      if (auto dropped = drop_until(header.place); !dropped) return dropped;
      sent_ = header.place;
      is_hello_seen_ = true;
      return {};
    case Kind::kAck:
      if (header.place > sent_) return make_error("bytes were acknowledged that were never sent");
      return drop_until(header.place);
    case Kind::kData:
      return take_data(header, data);
    case Kind::kEnd:
      return take_end(header);
  }
  return make_error("a frame of the unknown kind {} came", static_cast<int>(header.kind));
}

// The other end has all before `place`.
Result<void> ResumeEngine::drop_until(std::uint64_t place) {
  const std::uint64_t most = end_place() + (is_end_given_ ? 1 : 0);
  if (place < acked_ || place > most) {
    return make_error("the other end stands at byte {}, outside of {} to {}", place, acked_, most);
  }
  acked_ = place;
  const std::uint64_t bytes = std::min(place, end_place()) - kept_from_;
  head_ += bytes;
  kept_from_ += bytes;
  if (head_ >= kCompactAt || head_ == kept_.size()) {
    kept_.erase(0, head_);
    head_ = 0;
  }
  return {};
}

Result<void> ResumeEngine::take_data(const Header& header, std::string_view data) {
  if (is_ended_ || header.place != received_) {
    return make_error("bytes of place {} came where {} was next", header.place, received_);
  }
  came_.append(data);
  received_ += data.size();
  if (received_ - told_ >= kAckAfter) is_ack_due_ = true;
  return {};
}

Result<void> ResumeEngine::take_end(const Header& header) {
  if (is_ended_ || header.place != received_) {
    return make_error("an end at place {} came where {} was next", header.place, received_);
  }
  is_ended_ = true;
  ++received_;
  is_ack_due_ = true;
  return {};
}

std::string ResumeEngine::take_over() { return std::exchange(came_, {}); }

std::string ResumeEngine::next_wire() {
  std::string out;
  if (std::exchange(owes_hello_, false)) {
    add_frame(&out, {Kind::kHello, 0, received_});
    told_ = received_;
  }
  if (std::exchange(is_ack_due_, false) && owes_ack()) {
    add_frame(&out, {Kind::kAck, 0, received_});
    told_ = received_;
  }
  if (!is_hello_seen_) return out;
  if (sent_ < end_place()) {
    const std::string_view rest =
        std::string_view(kept_).substr(head_ + static_cast<std::size_t>(sent_ - kept_from_));
    const std::string_view data = rest.substr(0, kMostData);
    add_frame(&out, {Kind::kData, static_cast<std::uint32_t>(data.size()), sent_}, data);
    sent_ += data.size();
  } else if (is_end_given_ && sent_ == end_place()) {
    add_frame(&out, {Kind::kEnd, 0, sent_});
    ++sent_;
  }
  return out;
}

void ResumeEngine::add_frame(std::string* out, const Header& header, std::string_view data) {
  out->reserve(out->size() + kHeader + data.size());
  out->push_back(static_cast<char>(header.kind));
  put_number(out, header.size);
  put_number(out, header.place);
  out->append(data);
}

}  // namespace hvd
