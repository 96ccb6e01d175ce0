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
