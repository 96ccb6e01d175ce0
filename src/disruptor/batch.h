#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "disruptor/outcome.h"

namespace millrace::disruptor {

/// What the dispatcher keeps in each slot beside the element.
struct SlotHead {
  ElementId id = kNotAccepted;
  /// What the element said it holds when it entered; given back when its slot is freed.
  size_t memory = 0;
  uint32_t code = 0;
  int32_t level = Outcome::kNoLevel;
  /// kCompleted while nothing has stopped the element.
  Fate fate = Fate::kCompleted;

  bool live() const { return fate == Fate::kCompleted; }
  void stop(Fate by, uint32_t with_code, int32_t at_level) {
    fate = by;
    code = with_code;
    level = at_level;
  }
  Outcome outcome() const { return {id, fate, code, level}; }
};

/// The elements that one handler call is shown, without their type. Lives for that call.
class BatchCore {
 public:
  static constexpr size_t kNone = ~size_t{0};

  BatchCore(std::span<SlotHead* const> slots, int32_t level) : slots_(slots), level_(level) {}

  size_t size() const { return slots_.size(); }
  SlotHead& slot(size_t i) const { return *slots_[i]; }
  void decide(size_t i, Verdict verdict) {
    if (verdict.code != 0) slots_[i]->stop(Fate::kSkipped, verdict.code, level_);
  }
  /// The element that the handler's loop is at; kNone outside a loop.
  size_t at() const { return at_; }
  void set_at(size_t i) { at_ = i < size() ? i : kNone; }

 private:
  std::span<SlotHead* const> slots_;
  int32_t level_;
  size_t at_ = kNone;
};

template <typename E>
struct Slot : SlotHead {
  std::optional<E> element;
};

/// The elements that a level's handler is shown: in order, without those that an earlier level stopped, at least one.
/// It says Skip for some and nothing for the others. Valid during the call only.
///
/// When the handler throws inside `for (auto item : batch)`, the item it was at fails, those before keep their
/// verdicts, and the handler is called again with those after it. When it throws outside such a loop, nobody knows
/// whose fault it was, and every element of the batch that was not skipped fails.
template <typename E>
class Batch {
 public:
  class Item {
   public:
    E& element() const { return static_cast<Slot<E>&>(core_->slot(i_)).element.operator*(); }
    E& operator*() const { return element(); }
    E* operator->() const { return &element(); }
    ElementId id() const { return core_->slot(i_).id; }
    void skip(uint32_t code) const { core_->decide(i_, Verdict::Skip(code)); }
    void decide(Verdict verdict) const { core_->decide(i_, verdict); }

   private:
    friend class Batch;
    Item(BatchCore* core, size_t i) : core_(core), i_(i) {}
    BatchCore* core_;
    size_t i_;
  };

  class Iterator {
   public:
    Item operator*() const { return {core_, i_}; }
    Iterator& operator++() {
      core_->set_at(++i_);
      return *this;
    }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }

   private:
    friend class Batch;
    Iterator(BatchCore* core, size_t i) : core_(core), i_(i) {}
    BatchCore* core_;
    size_t i_;
  };

  explicit Batch(BatchCore& core) : core_(&core) {}

  size_t size() const { return core_->size(); }
  /// For looks out of order, also from helper threads of the handler; does not say whom a throw is to fail.
  Item operator[](size_t i) const { return {core_, i}; }
  Iterator begin() const {
    core_->set_at(0);
    return {core_, 0};
  }
  Iterator end() const { return {core_, core_->size()}; }

 private:
  BatchCore* core_;
};

}  // namespace millrace::disruptor
