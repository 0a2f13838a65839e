// A few threads for work that blocks. They are started as work comes. A library call can hold a
// thread up, and the program must be able to end all the same: such a thread is let go, and work
// must therefore own everything that it touches. All others are joined: what libraries clean up at
// the end of a thread must not meet what they clean up at the end of the process.
//
// Lifecycle: after the destructor no new work begins; it waits a moment for the running work. Any
// thread may call submit().
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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
    state_->has_ended.wait_for(lock, kPatience, [this] { return state_->running.empty(); });
    for (auto& [id, thread] : state_->running) thread.detach();
    state_->running.clear();
    std::vector<std::thread> ended = std::move(state_->ended);
    lock.unlock();
    for (std::thread& thread : ended) thread.join();
  }

  void submit(std::function<void()> work) {
    const std::lock_guard lock(state_->mutex);
    state_->work.push_back(std::move(work));
    if (state_->num_idle >= state_->work.size() || state_->running.size() == state_->max_threads) {
      state_->has_work.notify_one();
      return;
    }
    // It waits for the mutex that is held here.
    std::thread thread([state = state_] { run(*state); });
    const std::thread::id id = thread.get_id();
    state_->running.emplace(id, std::move(thread));
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
    std::map<std::thread::id, std::thread> running;
    std::vector<std::thread> ended;  // or about to: there is nothing more that they wait for
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
    // Not among them: the pool has gone and let this thread go.
    const auto own = state.running.find(std::this_thread::get_id());
    if (own == state.running.end()) return;
    state.ended.push_back(std::move(own->second));
    state.running.erase(own);
    state.has_ended.notify_all();
  }

  const std::shared_ptr<State> state_;
};

}  // namespace hvd
