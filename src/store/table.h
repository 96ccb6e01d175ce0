#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace millrace::store {

/// A table is a RocksDB column family. The names are on disk: rename none, append only, before kCount.
/// What lies in each, key by key, is in docs/storage.md.
enum class Table : uint8_t {
  kMeta,
  kTopics,
  kLog,
  kLogCompacted,
  kGroups,
  kProducers,
  kIdempotency,
  kTimers,
  kPackages,
  kVirtualNodes,
  kCheckpoints,
  kFlowStatus,
  kNodeState,
  kCatalog,
  kLifecycles,
  kWebhooks,
  kLedgerBlocks,
  kLedgerTransactions,
  kLedgerState,
  kLedgerUndo,
  kCount
};

inline constexpr std::array<std::string_view, static_cast<size_t>(Table::kCount)> kTableNames = {
    "meta",       "topics",   "log",           "log_compacted",       "groups",       "producers",  "idempotency",
    "timers",     "packages", "virtual_nodes", "checkpoints",         "flow_status",  "node_state", "catalog",
    "lifecycles", "webhooks", "ledger_blocks", "ledger_transactions", "ledger_state", "ledger_undo"};

constexpr std::string_view name_of(Table table) {
  return kTableNames[static_cast<size_t>(table)];
}

}  // namespace millrace::store
