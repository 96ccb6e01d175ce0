#include "worker/lease.h"

#include <spdlog/fmt/fmt.h>

#include "proto/bus.pb.h"

namespace millrace::worker {
namespace {

using store::Table;

bus::Change lease_row(const bus::Home& home, uint64_t epoch, std::string_view owner) {
  proto::LeaseRow row;
  row.set_epoch(epoch);
  row.set_owner(std::string(owner));
  return {Table::kMeta, lease_key(home), row.SerializeAsString()};
}

}  // namespace

Bytes lease_key(const bus::Home& home) {
  return home.key("lease");
}

Result<Lease> read_lease(const bus::View& view, const bus::Home& home) {
  auto row = view.get(Table::kMeta, lease_key(home));
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) return Lease{};
  proto::LeaseRow parsed;
  if (!parsed.ParseFromString((*row)->value))
    return fail(ErrorKind::kCorruption, "INVALID_LEASE_ROW",
                fmt::format("lease {} cannot be read", to_hex(lease_key(home))));
  return Lease{parsed.epoch(), parsed.owner(), (*row)->version};
}

bus::Commit acquire_lease(const bus::Home& home, const Lease& seen, std::string_view owner) {
  bus::Commit commit(home);
  commit.conditions.push_back({Table::kMeta, lease_key(home), seen.version});
  commit.state.push_back(lease_row(home, seen.epoch + 1, owner));
  return commit;
}

bus::Fence fence_of(const bus::Home& home, uint64_t epoch) {
  return {lease_key(home), epoch};
}

bus::Commit release_lease(const bus::Home& home, uint64_t epoch) {
  bus::Commit commit(home);
  commit.fences.push_back(fence_of(home, epoch));
  commit.state.push_back(lease_row(home, epoch, ""));
  return commit;
}

}  // namespace millrace::worker
