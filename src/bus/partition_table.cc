#include "bus/partition_table.h"

#include <algorithm>

namespace millrace::bus {

void PartitionLog::add(const SegmentRange& appended) {
  MILLRACE_ASSERT(appended.first_offset == high_watermark, "a batch that does not follow the high watermark");
  if (newest.empty()) {
    newest = appended;
  } else if (newest.log_class == appended.log_class && newest.segment == appended.segment) {
    newest.next_offset = appended.next_offset;
    newest.max_timestamp_ms = std::max(newest.max_timestamp_ms, appended.max_timestamp_ms);
    newest.bytes += appended.bytes;
  } else {
    auto more = older ? std::make_shared<Ranges>(*older) : std::make_shared<Ranges>();
    more->push_back(newest);
    older = std::move(more);
    newest = appended;
  }
  high_watermark = appended.next_offset;
  bytes += appended.bytes;
}

void PartitionLog::trim(uint64_t start) {
  if (start <= log_start) return;
  MILLRACE_ASSERT(start <= high_watermark, "a log that starts behind its high watermark");
  log_start = start;
  if (older) {
    auto keep =
        std::find_if(older->begin(), older->end(), [&](const auto& range) { return range.next_offset > start; });
    for (auto range = older->begin(); range != keep; ++range) bytes -= range->bytes;
    if (keep == older->end())
      older = nullptr;
    else if (keep != older->begin())
      older = std::make_shared<Ranges>(keep, older->end());
  }
  if (newest.empty() || newest.next_offset > start) return;
  bytes -= newest.bytes;
  newest = {};
}

bool PartitionLog::move(const SegmentRange& source, uint64_t source_bytes, const SegmentRange& moved) {
  auto changed = std::make_shared<Ranges>();
  bool found = false;
  auto join = [&](const SegmentRange& range) {
    if (!changed->empty() && changed->back().log_class == range.log_class && changed->back().segment == range.segment) {
      SegmentRange& last = changed->back();
      last.next_offset = range.next_offset;
      last.max_timestamp_ms = std::max(last.max_timestamp_ms, range.max_timestamp_ms);
      last.bytes += range.bytes;
    } else {
      changed->push_back(range);
    }
  };
  for (size_t i = 0; i < ranges(); ++i) {
    SegmentRange rest = range(i);
    if (rest.log_class == source.log_class && rest.segment == source.segment &&
        rest.first_offset == source.first_offset) {
      if (moved.next_offset > rest.next_offset || source_bytes > rest.bytes) return false;
      if (moved.first_offset > std::max(rest.first_offset, log_start)) return false;
      found = true;
      join(moved);
      rest.first_offset = moved.next_offset;
      rest.bytes -= source_bytes;
      if (rest.empty()) {
        bytes -= rest.bytes;
        continue;
      }
    }
    join(rest);
  }
  if (!found) return false;
  bytes = bytes - source_bytes + moved.bytes;
  newest = changed->back();
  changed->pop_back();
  older = changed->empty() ? nullptr : std::move(changed);
  return true;
}

PartitionTable::PartitionTable() : root_(std::make_shared<Root>()) {}

const PartitionLog* PartitionTable::find(uint32_t id) const {
  size_t node = id >> (kLeafBits + kNodeBits);
  if (node >= root_->size() || !(*root_)[node]) return nullptr;
  const auto& leaf = (*root_)[node]->leaves[(id >> kLeafBits) & ((1u << kNodeBits) - 1)];
  if (!leaf) return nullptr;
  const auto& log = leaf->logs[id & ((1u << kLeafBits) - 1)];
  return log ? &*log : nullptr;
}

void PartitionTable::apply(Changes changes) {
  if (changes.empty()) return;
  auto root = std::make_shared<Root>(*root_);
  // The copies being changed: each is made once, because ids ascend.
  std::shared_ptr<Node> node;
  std::shared_ptr<Leaf> leaf;
  uint32_t node_at = 0, leaf_at = 0;
  for (auto& [id, log] : changes) {
    if (!node || node_at != id >> (kLeafBits + kNodeBits)) {
      node_at = id >> (kLeafBits + kNodeBits);
      if (root->size() <= node_at) root->resize(node_at + 1);
      node = (*root)[node_at] ? std::make_shared<Node>(*(*root)[node_at]) : std::make_shared<Node>();
      (*root)[node_at] = node;
      leaf = nullptr;
    }
    if (!leaf || leaf_at != id >> kLeafBits) {
      leaf_at = id >> kLeafBits;
      auto& place = node->leaves[leaf_at & ((1u << kNodeBits) - 1)];
      leaf = place ? std::make_shared<Leaf>(*place) : std::make_shared<Leaf>();
      place = leaf;
    }
    leaf->logs[id & ((1u << kLeafBits) - 1)] = std::move(log);
  }
  root_ = std::move(root);
}

}  // namespace millrace::bus
