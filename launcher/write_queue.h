// The queue between the loop and a detached thread that writes what it is given, however long that
// takes: the loop never waits, and an owner that goes leaves a thread stuck in write(2) behind,
// which then touches the loop no more.
//
// Lifecycle: shared by the owner and its thread, which ends after abandon(). Thread: push() and
// abandon() on the loop's, next() and post() on the writing one.
#pragma once

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/loop.h"

namespace hvd {

template <typename Item>
class WriteQueue {
 public:
  explicit WriteQueue(Loop& loop) : loop_(&loop) {}

  void push(Item item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    wake_.notify_one();
  }

  // The owner goes: nothing is posted any more when this has returned.
  void abandon() {
    {
      const std::lock_guard lock(mutex_);
      loop_ = nullptr;
    }
    wake_.notify_one();
  }

  // Waits for an item. False once abandoned.
  bool next(Item* item) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return loop_ == nullptr || !items_.empty(); });
    if (loop_ == nullptr) return false;
    *item = std::move(items_.front());
    items_.pop_front();
    return true;
  }

  // Runs `done` on the loop. Under the lock, so that abandon() cannot come between the look at the
  // loop and its use.
  template <typename Done>
  void post(Done done) {
    const std::lock_guard lock(mutex_);
    if (loop_ != nullptr) boost::asio::post(*loop_, std::move(done));
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> items_;  // guarded by mutex_
  Loop* loop_;              // guarded by mutex_; null once the owner has gone
};

}  // namespace hvd
