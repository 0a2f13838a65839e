// A few threads for work that blocks. They are started as work comes, and let go rather than
// joined: a library call can hold a thread up, and the program must be able to end all the same.
// Work must therefore own everything that it touches.
//
// Lifecycle: after the destructor no new work begins; it waits a moment for the running work. Any
// thread may call submit().
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace hvd {

class WorkerPool {
 public:
  explicit WorkerPool(std::size_t max_threads) : state_(std::make_shared<State>(max_threads)) {}
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool() {
    std::unique_lock lock(state_->mutex);
    state_->is_stopping = true;
    state_->work.clear();
    state_->has_work.notify_all();
    state_->has_ended.wait_for(lock, kPatience, [this] { return state_->num_threads == 0; });
  }

  void submit(std::function<void()> work) {
    const std::lock_guard lock(state_->mutex);
    state_->work.push_back(std::move(work));
    if (state_->num_idle >= state_->work.size() || state_->num_threads == state_->max_threads) {
      state_->has_work.notify_one();
      return;
    }
    ++state_->num_threads;
    std::thread([state = state_] { run(*state); }).detach();
  }

 private:
  static constexpr auto kPatience = std::chrono::milliseconds(300);

  // Shared by the pool and its threads, which may outlive it.
  struct State {
    explicit State(std::size_t limit) : max_threads(limit) {}
    const std::size_t max_threads;
    std::mutex mutex;
    std::condition_variable has_work;
    std::condition_variable has_ended;
    std::deque<std::function<void()>> work;
    std::size_t num_threads = 0;
    std::size_t num_idle = 0;
    bool is_stopping = false;
  };

  static void run(State& state) {
    std::unique_lock lock(state.mutex);
    while (true) {
      ++state.num_idle;
      state.has_work.wait(lock, [&] { return state.is_stopping || !state.work.empty(); });
      --state.num_idle;
      if (state.is_stopping) break;
      auto work = std::move(state.work.front());
      state.work.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
    --state.num_threads;
    state.has_ended.notify_all();
  }

  const std::shared_ptr<State> state_;
};

}  // namespace hvd
