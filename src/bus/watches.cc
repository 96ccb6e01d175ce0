#include "bus/watches.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <cstring>

/// A topic's id is random: its bytes are a hash already.
size_t std::hash<millrace::bus::TopicPartition>::operator()(
    const millrace::bus::TopicPartition& partition) const noexcept {
  size_t bits;
  std::memcpy(&bits, partition.topic.bytes.data() + 8, sizeof bits);
  return bits ^ (static_cast<size_t>(partition.partition) * 0x9E3779B97F4A7C15ull);
}

namespace millrace::bus {

struct Watches::Entry {
  std::function<void()> wake;
  std::atomic<bool> woken{false};

  void call() {
    if (woken.exchange(true, std::memory_order_acq_rel)) return;
    // Frees what it captured, which may be the owner of the handle.
    auto once = std::move(wake);
    once();
  }
};

/// Outlives the Watches while handles are kept.
struct Watches::Registry {
  struct Waiting {
    uint64_t offset;
    std::shared_ptr<Entry> entry;
  };
  explicit Registry(size_t max) : max_watches(max) {}

  const size_t max_watches;
  Mutex mutex;
  size_t count GUARDED_BY(mutex) = 0;
  std::unordered_map<TopicPartition, std::vector<Waiting>> waiting GUARDED_BY(mutex);
};

class Watches::Handle final : public Watch {
 public:
  Handle(std::shared_ptr<Registry> registry, std::shared_ptr<Entry> entry, std::vector<WatchedOffset> offsets)
      : registry_(std::move(registry)), entry_(std::move(entry)), offsets_(std::move(offsets)) {}

  ~Handle() override {
    entry_->woken.store(true, std::memory_order_release);
    MutexLock lock(registry_->mutex);
    registry_->count -= offsets_.size();
    for (const WatchedOffset& watched : offsets_) {
      auto found = registry_->waiting.find(watched.partition);
      if (found == registry_->waiting.end()) continue;
      std::erase_if(found->second, [&](const auto& waiting) { return waiting.entry == entry_; });
      if (found->second.empty()) registry_->waiting.erase(found);
    }
  }
  Entry& entry() { return *entry_; }

 private:
  std::shared_ptr<Registry> registry_;
  std::shared_ptr<Entry> entry_;
  std::vector<WatchedOffset> offsets_;
};

Watches::Watches(size_t max_watches) : registry_(std::make_shared<Registry>(max_watches)) {}

Result<std::unique_ptr<Watch>> Watches::add(std::vector<WatchedOffset> offsets, std::function<void()> wake) {
  auto entry = std::make_shared<Entry>();
  entry->wake = std::move(wake);
  {
    MutexLock lock(registry_->mutex);
    if (registry_->count + offsets.size() > registry_->max_watches)
      return fail(ErrorKind::kExhausted, "TOO_MANY_WATCHES",
                  fmt::format("{} partitions are being waited for; at most {} can be", registry_->count,
                              registry_->max_watches));
    registry_->count += offsets.size();
    for (const WatchedOffset& watched : offsets)
      registry_->waiting[watched.partition].push_back({watched.offset, entry});
  }
  return std::make_unique<Handle>(registry_, std::move(entry), std::move(offsets));
}

void Watches::wake_now(Watch& watch) {
  static_cast<Handle&>(watch).entry().call();
}

void Watches::moved(const std::vector<Moved>& partitions) {
  std::vector<std::shared_ptr<Entry>> due;
  {
    MutexLock lock(registry_->mutex);
    if (registry_->waiting.empty()) return;
    for (const Moved& move : partitions) {
      auto found = registry_->waiting.find(move.partition);
      if (found == registry_->waiting.end()) continue;
      std::erase_if(found->second, [&](auto& waiting) {
        bool passed = !move.high_watermark || *move.high_watermark > waiting.offset;
        if (passed) due.push_back(std::move(waiting.entry));
        return passed;
      });
      if (found->second.empty()) registry_->waiting.erase(found);
    }
  }
  for (const auto& entry : due) entry->call();
}

bool any_passed(const View& view, const std::vector<WatchedOffset>& offsets) {
  return std::any_of(offsets.begin(), offsets.end(), [&](const WatchedOffset& watched) {
    auto state = view.partition(watched.partition);
    return !state || state->high_watermark > watched.offset;
  });
}

size_t Watches::count() const {
  MutexLock lock(registry_->mutex);
  return registry_->count;
}

}  // namespace millrace::bus
