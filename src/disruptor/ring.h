#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "disruptor/sequence.h"
#include "disruptor/wait_strategy.h"

namespace millrace::disruptor {

enum class Producers { kSingle, kMulti };

/// A position that a consumer moves, and who is woken when it moves. Level 0's barrier of a ring is what has been
/// published; consumer k may take positions up to barrier k and moves barrier k + 1; the last one frees slots.
class Barrier {
 public:
  int64_t get() const { return position_.get(); }
  /// By the one consumer that moves this barrier.
  int64_t own() const { return position_.own(); }
  /// Everything before `position` has passed.
  void advance(int64_t position) {
    position_.set(position);
    if (event_ != nullptr) event_->notify();
  }
  /// Before any thread uses the barrier. The event must outlive it.
  void wakes(Eventcount& event) { event_ = &event; }

 private:
  Sequence position_;
  Eventcount* event_ = nullptr;
};

/// The bookkeeping of a ring of reusable slots: which positions are claimed, published and free. Positions count from
/// 0 for ever; position p lies in slot p & (slot count - 1). Memory is bounded by the slot count; nothing is allocated
/// after construction.
///
/// Producers claim, write their slots, publish; with kMulti from any number of threads, and a published position is
/// visible to consumers only when all before it are published as well. Consumers read and move barriers; a slot is
/// free when every gate has passed it. A consumer may be a thread that wait()s, or be driven by hand: look at
/// highest_published(), process, advance its own barrier.
class RingCore {
 public:
  static constexpr int64_t kFull = -1;
  static constexpr int64_t kClosed = -2;

  /// `slot_count` is a power of two, 1 included.
  RingCore(size_t slot_count, Producers producers);
  RingCore(const RingCore&) = delete;
  RingCore& operator=(const RingCore&) = delete;

  size_t slot_count() const { return static_cast<size_t>(slot_count_); }
  size_t slot_of(int64_t position) const { return static_cast<size_t>(position & mask_); }

  /// Slots become free when `gate` and every other gate have passed them. Before any thread uses the ring; the barrier
  /// must outlive it, and from now on wakes producers that wait in claim(). Without a gate nothing is ever free again.
  void gate_on(Barrier& gate);

  /// The first of `n` consecutive positions, or kFull (so many are not free now) or kClosed. Never blocks. What is
  /// claimed must be published, and soon: it holds up everything behind it.
  int64_t try_claim(int64_t n = 1) {
    return producers_ == Producers::kSingle ? try_claim_single(n) : try_claim_multi(n);
  }
  /// As try_claim, but waits while full. Not for threads that must not block.
  int64_t claim(int64_t n = 1, const WaitPolicy& policy = {});
  /// Makes [first, first + n) visible and wakes a sleeping consumer.
  void publish(int64_t first, int64_t n = 1) {
    publish_quietly(first, n);
    published_event_->notify();
  }
  /// The same without waking anybody: for a producer that is about to consume, or to wake the consumer itself.
  void publish_quietly(int64_t first, int64_t n = 1) {
    if (producers_ == Producers::kSingle)
      published_.set(first + n);
    else
      for (int64_t position = first; position < first + n; ++position)
        rounds_[slot_of(position)].store(round_of(position), std::memory_order_release);
  }
  /// No position is claimed from now on; what is claimed already can still be published. With kSingle only by the
  /// producer. Afterwards claimed() stands still.
  void close();

  /// The end of the unbroken run of published positions that starts at `from`, at most `limit`; `from` itself when
  /// nothing is there. `from` must not be before the slowest gate nor after a position that is not published.
  int64_t highest_published(int64_t from, int64_t limit) const {
    if (producers_ == Producers::kSingle) {
      int64_t end = published_.get();
      return end < limit ? end : limit;
    }
    int64_t position = from;
    while (position < limit && is_published(position)) ++position;
    return position;
  }
  bool is_published(int64_t position) const {
    if (producers_ == Producers::kSingle) return position < published_.get();
    return rounds_[slot_of(position)].load(std::memory_order_acquire) == round_of(position);
  }

  /// Waits until `position` is published (true), or returns false when interrupted; see Eventcount for the key.
  bool wait_published(int64_t position, Eventcount::Key key, const WaitPolicy& policy = {}) {
    return published_event_->wait(key, policy, [&] { return is_published(position); });
  }
  /// Waits until everything before `position` is free.
  void wait_freed(int64_t position, const WaitPolicy& policy = {});
  /// Notified at each publish. Shared, so that a nudge from elsewhere may outlive the ring.
  const std::shared_ptr<Eventcount>& published_event() const { return published_event_; }

  /// How many positions have been claimed so far; for introspection, and exact after close().
  int64_t claimed() const { return claimed_.load(std::memory_order_acquire) & ~kClosedBit; }
  bool closed() const { return (claimed_.load(std::memory_order_acquire) & kClosedBit) != 0; }
  /// The position that the slowest gate has reached.
  int64_t freed() const;

 private:
  static constexpr int64_t kClosedBit = int64_t{1} << 62;

  int64_t try_claim_single(int64_t n);
  int64_t try_claim_multi(int64_t n);
  /// Whether [first, first + n) is free.
  bool has_room(int64_t first, int64_t n);
  /// How often the ring has been gone around at this position. It may wrap: only equality matters, and a slot's
  /// round is never more than one behind.
  uint32_t round_of(int64_t position) const { return static_cast<uint32_t>(position >> shift_); }

  // Read by all, written by none after construction.
  const int64_t slot_count_;
  const int64_t mask_;
  const int shift_;
  const Producers producers_;
  std::vector<const Barrier*> gates_;
  std::shared_ptr<Eventcount> published_event_ = std::make_shared<Eventcount>();
  /// kMulti: the round in which each slot was last published.
  std::unique_ptr<std::atomic<uint32_t>[]> rounds_;

  // Written by producers.
  alignas(kCacheLinePair) std::atomic<int64_t> claimed_{0};
  /// A gate position seen earlier: the gates are read again only when this one does not suffice.
  alignas(kCacheLinePair) std::atomic<int64_t> freed_seen_{0};
  /// kSingle: everything before this is published.
  Sequence published_;
  /// Notified when a gate advances.
  Eventcount space_event_;
};

/// RingCore with its slots. T is made once per slot and reused: a producer overwrites what the previous round left.
template <typename T>
class Ring : public RingCore {
 public:
  Ring(size_t slot_count, Producers producers)
      : RingCore(slot_count, producers), slots_(std::make_unique<T[]>(this->slot_count())) {}

  /// For the producer between claim and publish, and for consumers between their barrier and the next one.
  T& operator[](int64_t position) { return slots_[slot_of(position)]; }
  const T& operator[](int64_t position) const { return slots_[slot_of(position)]; }

 private:
  std::unique_ptr<T[]> slots_;
};

}  // namespace millrace::disruptor
