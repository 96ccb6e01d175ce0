#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "disruptor/dispatcher_core.h"

namespace millrace::disruptor {

/// What a dispatcher carries: it can be moved without throwing (between claiming a slot and publishing it nothing may
/// fail) and says how many bytes it holds.
template <typename E>
concept Element = std::is_nothrow_move_constructible_v<E> && requires(const E& element) {
  { element.memory_size() }
  noexcept->std::convertible_to<size_t>;
};

/// A stage: a name (unique in its dispatcher) and a handler that is shown batches of elements, always on one and the
/// same thread and in order, so that it may change them and its own state without a lock.
template <typename E>
struct Level {
  std::string name;
  std::function<void(Batch<E>&)> handler;
};

/// A level whose consumer looks at one element at a time: `Verdict consume(E&)`.
template <typename E, typename Consume>
Level<E> per_element(std::string name, Consume consume) {
  return {std::move(name), [consume = std::move(consume)](Batch<E>& batch) mutable {
            for (auto item : batch) item.decide(consume(item.element()));
          }};
}

/// Takes elements from any number of threads through levels of consumers, in order of entry. See docs/disruptor.md.
///
/// Bounded by slots and by the memory its elements say they hold; never blocks who enters. Each completion is called
/// exactly once: for accepted elements by the last level's thread, in order, for refused ones by the caller before
/// process_element() ends, for those pending at a stop by who stops. An exception of a consumer fails its element,
/// one of a callback is counted; neither ends the process. Owned by whoever feeds it; the destructor stops it.
template <Element E>
class Dispatcher {
 public:
  /// Receives the element back, changed as the levels left it; it may be moved from. Must not shut the dispatcher
  /// down, may enter new elements.
  using Completion = std::function<void(E&, const Outcome&)>;
  /// Sees every accepted element at its end, skipped ones included, before its completion.
  using Inspector = std::function<void(E&, const Outcome&)>;

  /// Starts the threads. Fails with DISPATCHER_OPTIONS.
  static Result<std::unique_ptr<Dispatcher>> create(DispatcherOptions options, std::vector<Level<E>> levels,
                                                    Inspector inspector = {}) {
    std::vector<DispatcherCore::LevelSpec> specs;
    for (auto& level : levels) specs.push_back({std::move(level.name), erase(std::move(level.handler))});
    MILLRACE_TRY(DispatcherCore::check(options, specs));
    return std::unique_ptr<Dispatcher>(new Dispatcher(std::move(options), std::move(specs), std::move(inspector)));
  }
  ~Dispatcher() { core_.shutdown(Pending::kFail); }
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Enters an element; its id, or 0 when it was refused. Throws DispatcherFull instead of returning 0 for a full
  /// dispatcher with abort_when_full. Never blocks; any thread.
  ElementId process_element(E element, Completion completion = {}) {
    Fate refusal{};
    const size_t memory = element.memory_size();
    auto* slot = static_cast<TypedSlot*>(core_.enter(memory, refusal));
    if (slot == nullptr) {
      tell(completion, "completion", element, {.fate = refusal});
      core_.refused(refusal, memory);
      return kNotAccepted;
    }
    const ElementId id = slot->id;
    slot->element.emplace(std::move(element));
    slot->completion = std::move(completion);
    core_.publish(*slot);
    return id;
  }

  /// Refuses new elements, deals with the pending ones as told and ends the threads. By the owner, not from a consumer
  /// or callback. Later calls do nothing.
  void shutdown(Pending pending) { core_.shutdown(pending); }

  /// Any thread, also after shutdown().
  DispatcherStats stats() const { return core_.stats(); }
  /// Nanoseconds in one handler call of the level.
  const Histogram& service_time(size_t level) const { return core_.service_time(level); }

 private:
  struct TypedSlot : Slot<E> {
    Completion completion;
  };

  Dispatcher(DispatcherOptions options, std::vector<DispatcherCore::LevelSpec> specs, Inspector inspector)
      : inspector_(std::move(inspector)),
        slots_(std::make_unique<TypedSlot[]>(options.slot_count)),
        core_(std::move(options), std::move(specs),
              {slots_.get(), sizeof(TypedSlot),
               [this](SlotHead& head, const Outcome& outcome) { finish(static_cast<TypedSlot&>(head), outcome); }}) {
    core_.start();
  }

  static std::function<void(BatchCore&)> erase(std::function<void(Batch<E>&)> handler) {
    if (!handler) return {};
    return [handler = std::move(handler)](BatchCore& core) {
      Batch<E> batch(core);
      handler(batch);
    };
  }

  void finish(TypedSlot& slot, const Outcome& outcome) {
    tell(inspector_, "inspector", *slot.element, outcome);
    tell(slot.completion, "completion", *slot.element, outcome);
    // Whatever destructors do is the callbacks' doing as well.
    slot.completion = nullptr;
    slot.element.reset();
  }

  void tell(const Completion& callback, std::string_view what, E& element, const Outcome& outcome) {
    if (callback) core_.guarded(what, [&] { callback(element, outcome); });
  }

  const Inspector inspector_;
  const std::unique_ptr<TypedSlot[]> slots_;
  DispatcherCore core_;
};

}  // namespace millrace::disruptor
