// The opens of a transport that are under way, each with what ends it. Thread: the loop's.
#pragma once

#include <functional>
#include <set>

namespace hvd {

class OpenList {
 public:
  // Listed while it lives; must not outlive the list.
  class Entry {
   public:
    Entry(OpenList& list, std::function<void()> abort) : list_(list), abort_(std::move(abort)) {
      list_.entries_.insert(this);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { list_.entries_.erase(this); }

   private:
    friend class OpenList;
    OpenList& list_;
    const std::function<void()> abort_;
  };

  void abort_all() {
    is_aborted_ = true;
    for (Entry* entry : entries_) entry->abort_();
  }
  [[nodiscard]] bool is_aborted() const { return is_aborted_; }

 private:
  std::set<Entry*> entries_;
  bool is_aborted_ = false;
};

}  // namespace hvd
