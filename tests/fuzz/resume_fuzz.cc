// The byte stream that outlives its connections. The input once as what comes from the other end:
// in whatever pieces, the same comes out of it or the same error. And once as a story of two ends
// and the breaks between them: no byte is lost and none comes twice.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "proto/resume_engine.h"

namespace {

void require(bool is_true) {
  if (!is_true) std::abort();
}

std::string all_of(hvd::ResumeEngine& from) {
  std::string all;
  for (std::string part = from.next_wire(); !part.empty(); part = from.next_wire()) all += part;
  return all;
}

// All that can be seen of an engine that has been given this.
std::string outcome(std::string_view wire, std::size_t piece) {
  hvd::ResumeEngine engine;
  engine.connect();
  engine.give("hello");
  std::string seen = all_of(engine);
  std::string came;
  while (!wire.empty()) {
    const auto taken = engine.take_wire(wire.substr(0, piece));
    wire.remove_prefix(std::min(piece, wire.size()));
    came += engine.take_over();
    require(engine.num_waiting() == 0);
    if (taken) continue;
    require(!taken.error().message.empty());
    return seen + came + taken.error().message;
  }
  require(!engine.is_given_taken() && engine.room() <= hvd::ResumeEngine::kMostKept);
  engine.acknowledge_soon();
  seen += all_of(engine) + came + (engine.is_ended() ? " ended" : "");
  require(!engine.owes_ack());
  return seen;
}

// One end and what is under way from it.
struct End {
  hvd::ResumeEngine engine;
  std::string given;  // all that was
  std::string came;   // all that has come from the other
  std::string under_way;
};

class Story {
 public:
  Story() { connect(); }

  // The low bits of `step` say what happens, the others how much and, one of them, at which end.
  void take(std::uint8_t step) {
    const std::size_t amount = step >> 4U;
    End& end = (step & 8U) == 0 ? left_ : right_;
    End& other = (step & 8U) == 0 ? right_ : left_;
    switch (step & 7U) {
      case 0:
        return connect();
      case 1:
      case 2:
        return give(end, amount * amount * amount);
      case 3:
        return end.engine.acknowledge_soon();
      case 4:
        end.under_way += end.engine.next_wire();
        return;
      case 5:
        return deliver(end, other, amount);
      case 6:
        return deliver(end, other, end.under_way.size());
      default:
        if (amount == 15) end.engine.give_end();
    }
  }

  void finish() {
    connect();
    for (End* end : {&left_, &right_}) end->engine.give_end();
    while (true) {
      for (End* end : {&left_, &right_}) end->under_way += all_of(end->engine);
      if (left_.under_way.empty() && right_.under_way.empty()) break;
      deliver(left_, right_, left_.under_way.size());
      deliver(right_, left_, right_.under_way.size());
      for (End* end : {&left_, &right_}) end->engine.acknowledge_soon();
    }
    require(left_.came == right_.given && right_.came == left_.given);
    for (const End* end : {&left_, &right_}) {
      require(end->engine.is_ended() && end->engine.is_given_taken());
    }
  }

 private:
  void connect() {
    for (End* end : {&left_, &right_}) {
      end->engine.connect();
      end->under_way.clear();
    }
  }

  void give(End& end, std::size_t size) {
    std::string bytes(std::min(size, end.engine.room()), '\0');
    for (char& c : bytes) c = static_cast<char>(next_byte_++);
    end.engine.give(bytes);
    end.given += bytes;
  }

  static void deliver(End& from, End& to, std::size_t size) {
    require(to.engine.take_wire(from.under_way.substr(0, size)).has_value());
    from.under_way.erase(0, size);
    to.came += to.engine.take_over();
  }

  End left_;
  End right_;
  unsigned next_byte_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = outcome(text, size + 1);
  for (const std::size_t piece : {1, 5}) require(outcome(text, piece) == whole);
  Story story;
  for (const std::uint8_t step : std::basic_string_view<std::uint8_t>(data, size)) story.take(step);
  story.finish();
  return 0;
}
