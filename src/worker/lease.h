#pragma once

#include <cstdint>
#include <string>

#include "bus/commit.h"
#include "bus/commit_log.h"

/// Leases: who may write to a home. A lease is a row (LeaseRow) of table meta in the home that it guards. Its epoch
/// only ever rises; a Commit that carries the Fence of an older epoch is refused, whoever sends it and however late.
namespace millrace::worker {

struct Lease {
  uint64_t epoch = 0;  ///< 0: nobody ever held it
  std::string owner;   ///< empty: released
  bus::Version version = bus::kAbsent;
};

/// The key of a home's lease.
Bytes lease_key(const bus::Home& home);

/// Errors: those of View::get, kCorruption INVALID_LEASE_ROW.
Result<Lease> read_lease(const bus::View& view, const bus::Home& home);

/// The Commit that takes the lease after `seen`, with the epoch above. Refused with CONDITION_FAILED when somebody else
/// was quicker: read again. Whoever takes a lease reads the home's rows from a View taken after the receipt, for until
/// then the owner before may still commit.
bus::Commit acquire_lease(const bus::Home& home, const Lease& seen, std::string_view owner);

/// What every Commit of the lease's owner carries.
bus::Fence fence_of(const bus::Home& home, uint64_t epoch);

/// The Commit that gives the lease up; the epoch stays. FENCED when it was lost already.
bus::Commit release_lease(const bus::Home& home, uint64_t epoch);

}  // namespace millrace::worker
