// Offsets of groups, and the end of groups.

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/utf8.h"
#include "group/coordinator_entry.h"
#include "proto/bus.pb.h"
#include "proto/group.pb.h"

namespace millrace::group {
namespace {

using store::Table;

/// A generation that became durable between check and commit makes the log refuse; then it is checked again. More
/// often than this in a row the member may as well join again.
constexpr int kMaxAttempts = 5;
/// Groups that one sweep looks at, and how often it comes at most.
constexpr size_t kGroupsPerSweep = 20;
constexpr int64_t kLongestSweepMs = 60'000, kShortestSweepMs = 100;
/// The most offsets that are read of one group at once.
constexpr size_t kMaxOffsetRows = 1'000'000;
/// That are removed by one Commit.
constexpr size_t kMaxRemovals = 5'000;

Bytes offsets_prefix(const bus::Home& home, const std::string& group) {
  Bytes prefix(home.prefix());
  prefix += group;
  prefix += '\0';
  return prefix;
}

Result<CommittedOffset> parse_offset(ByteView rest, ByteView value) {
  proto::OffsetRow row;
  CommittedOffset offset;
  if (rest.size() != offset.at.topic.bytes.size() + sizeof(uint32_t) ||
      !row.ParseFromArray(value.data(), static_cast<int>(value.size())))
    return fail(ErrorKind::kCorruption, "INVALID_OFFSET_ROW", fmt::format("offset {} cannot be read", to_hex(rest)));
  std::copy_n(rest.begin(), offset.at.topic.bytes.size(), offset.at.topic.bytes.begin());
  offset.at.partition = load_be<uint32_t>(rest.data() + offset.at.topic.bytes.size());
  offset.next_offset = row.next_offset();
  offset.leader_epoch = row.leader_epoch();
  offset.metadata = row.metadata();
  offset.commit_ms = row.commit_ms();
  return offset;
}

tl::unexpected<Error> in_use(const std::string& group) {
  return fail(ErrorKind::kConflict, "GROUP_IN_USE", fmt::format("group '{}' has come into use again", group));
}

}  // namespace

Error unknown_group(const std::string& group) {
  return Error{ErrorKind::kNotFound, "UNKNOWN_GROUP", fmt::format("there is no consumer group '{}'", group)};
}

Error unknown_member(const std::string& group, const std::string& member) {
  return Error{ErrorKind::kNotFound, "UNKNOWN_MEMBER_ID", fmt::format("group '{}' has no member '{}'", group, member)};
}

Status check_group_name(std::string_view name) {
  if (!name.empty() && is_utf8(name) && bus::Home::make(bus::HomeKind::kGroup, name)) return {};
  return fail(ErrorKind::kInvalidArgument, "INVALID_GROUP_ID",
              fmt::format("a group's name has 1 to {} bytes of UTF-8 without NUL", bus::Home::kMaxIdBytes));
}

void Coordinator::add_rows(const Entry& entry, int64_t wall_ms, bus::Commit& commit) {
  proto::GroupRow row;
  entry.group.fill(row);
  row.set_changed_ms(wall_ms);
  proto::LeaseRow lease;
  lease.set_epoch(static_cast<uint64_t>(entry.group.generation()));
  commit.state.push_back({Table::kGroups, Bytes(entry.home.prefix()), row.SerializeAsString()});
  commit.state.push_back({Table::kMeta, entry.lease(), lease.SerializeAsString()});
}

// ------------------------------------------------------------------------------------------------------------ offsets

void Coordinator::commit(const std::string& group, const MemberIdentity& who, std::vector<bus::ConsumedOffset> offsets,
                         std::function<void(Status)> reply) {
  auto commit = std::make_shared<OffsetCommit>();
  commit->group = group;
  commit->who = who;
  commit->offsets = std::move(offsets);
  commit->reply = std::move(reply);
  submit_offsets(std::move(commit));
}

void Coordinator::remove_offsets(const std::string& group, std::vector<bus::TopicPartition> partitions,
                                 std::function<void(Status)> reply) {
  auto commit = std::make_shared<OffsetCommit>();
  commit->group = group;
  commit->removals = std::move(partitions);
  commit->reply = std::move(reply);
  submit_offsets(std::move(commit));
}

void Coordinator::submit_offsets(std::shared_ptr<OffsetCommit> commit) {
  Outbox out(*this);
  Status refused;
  {
    MutexLock lock(mutex_);
    // Only somebody who is no member may make a group by committing.
    const bool may_make = commit->who.member_id.empty() && commit->removals.empty();
    Entry* entry = find(commit->group);
    if (entry == nullptr && may_make) {
      auto made = obtain(commit->group);
      if (made) entry = *made;
      if (!made) refused = tl::unexpected(std::move(made.error()));
    } else if (entry == nullptr) {
      refused = tl::unexpected(commit->removals.empty() ? unknown_member(commit->group, commit->who.member_id)
                                                        : unknown_group(commit->group));
    }
    if (entry != nullptr && (!commit->orphans || entry->group.state() == GroupState::kDead))
      refused = entry->group.check_commit(now_ms(), commit->who);
    if (refused) {
      bus::Commit rows(entry->home);
      rows.fences.push_back({entry->lease(), static_cast<uint64_t>(entry->durable_generation)});
      if (!entry->exists) add_rows(*entry, clock_.wall_ms(), rows);
      for (bus::ConsumedOffset& offset : commit->offsets) {
        offset.group = commit->group;
        offset.commit_ms = clock_.wall_ms();
        rows.offsets.push_back(offset);
      }
      for (const bus::TopicPartition& at : commit->removals) {
        bus::ConsumedOffset key;
        key.group = commit->group;
        key.from = at;
        rows.state.push_back({Table::kGroups, bus::offset_key(entry->home, key), std::nullopt});
      }
      rows.done = [this, commit](bus::CommitResult result) {
        on_offsets(commit, result ? Status() : tl::unexpected(std::move(result.error())));
      };
      ++entry->commits_in_flight;
      out.submit(std::move(rows));
    }
    if (entry != nullptr) {
      ClassicGroup::Effects none;
      settle(*entry, none, out);
    }
  }
  out.deliver();
  if (!refused) commit->reply(std::move(refused));
}

void Coordinator::on_offsets(const std::shared_ptr<OffsetCommit>& commit, Status status) {
  const bool fenced = !status && status.error().kind == ErrorKind::kFenced;
  Outbox out(*this);
  {
    MutexLock lock(mutex_);
    Entry& entry = *find(commit->group);
    --entry.commits_in_flight;
    if (status) entry.exists = true;
    if (entry.deletion) try_delete(entry, out);
    ClassicGroup::Effects none;
    settle(entry, none, out);
  }
  out.deliver();
  if (fenced) {
    ++stats_.fenced_commits;
    // The member is asked about once more: it may be of the generation that has just become durable.
    if (++commit->attempts < kMaxAttempts) return submit_offsets(commit);
    status = fail(ErrorKind::kConflict, "REBALANCE_IN_PROGRESS",
                  fmt::format("group '{}' changes its generation faster than offsets are committed", commit->group));
  }
  if (status) ++stats_.offset_commits;
  commit->reply(std::move(status));
}

Result<std::vector<CommittedOffset>> Coordinator::offsets(const bus::View& view, const std::string& group) const {
  MILLRACE_TRY(check_group_name(group));
  const Bytes prefix = offsets_prefix(Entry::home_of(group), group);
  auto rows = view.list(Table::kGroups, prefix, "", kMaxOffsetRows);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  std::vector<CommittedOffset> found;
  found.reserve(rows->size());
  for (const auto& [key, row] : *rows) {
    auto offset = parse_offset(ByteView(key).substr(prefix.size()), row.value);
    if (!offset) return tl::unexpected(std::move(offset.error()));
    found.push_back(*std::move(offset));
  }
  return found;
}

Result<std::optional<CommittedOffset>> Coordinator::offset(const bus::View& view, const std::string& group,
                                                           const bus::TopicPartition& at) const {
  MILLRACE_TRY(check_group_name(group));
  const bus::Home home = Entry::home_of(group);
  bus::ConsumedOffset wanted;
  wanted.group = group;
  wanted.from = at;
  const Bytes key = bus::offset_key(home, wanted);
  auto row = view.get(Table::kGroups, key);
  if (!row) return tl::unexpected(std::move(row.error()));
  if (!*row) return std::nullopt;
  auto offset = parse_offset(ByteView(key).substr(offsets_prefix(home, group).size()), (*row)->value);
  if (!offset) return tl::unexpected(std::move(offset.error()));
  return std::optional(*std::move(offset));
}

// ----------------------------------------------------------------------------------------------------------- deletion

void Coordinator::remove(const std::string& group, std::function<void(Status)> reply) {
  remove(group, std::nullopt, std::move(reply));
}

void Coordinator::remove(const std::string& group, std::optional<int64_t> before_ms,
                         std::function<void(Status)> reply) {
  Outbox out(*this);
  Status refused;
  {
    MutexLock lock(mutex_);
    Entry* entry = find(group);
    if (entry == nullptr) {
      refused = tl::unexpected(unknown_group(group));
    } else if (entry->group.state() != GroupState::kEmpty) {
      refused = entry->deletion ? fail(ErrorKind::kUnavailable, "COORDINATOR_NOT_AVAILABLE",
                                       fmt::format("group '{}' is being deleted", group))
                                : fail(ErrorKind::kConflict, "GROUP_NOT_EMPTY",
                                       fmt::format("group '{}' has {} members; it can be deleted when they have left",
                                                   group, entry->group.size()));
    } else if (before_ms && entry->empty_since_ms >= *before_ms) {
      refused = in_use(group);
    } else {
      entry->group.die();
      entry->deletion = std::move(reply);
      entry->deletion_before_ms = before_ms;
      entry->retry_owed = entry->retry_ms.has_value();
      entry->retry_ms.reset();
      try_delete(*entry, out);
      ClassicGroup::Effects none;
      settle(*entry, none, out);
    }
  }
  out.deliver();
  if (!refused) reply(std::move(refused));
}

/// What is under way would write rows behind the deletion, and the group would be there again after a restart.
void Coordinator::try_delete(Entry& entry, Outbox& out) {
  if (entry.persisting || entry.persist_wanted || entry.commits_in_flight > 0 || entry.deleting_rows) return;
  entry.deleting_rows = true;
  out.add([this, name = entry.name, epoch = static_cast<uint64_t>(entry.durable_generation),
           before_ms = entry.deletion_before_ms] { delete_rows(name, epoch, before_ms); });
}

/// The group is Dead and nothing is under way: the offsets stay as they are.
void Coordinator::delete_rows(const std::string& group, uint64_t epoch, std::optional<int64_t> before_ms) {
  auto rows = offsets(*log_.view(), group);
  if (!rows) return on_deleted(group, tl::unexpected(std::move(rows.error())));
  if (before_ms &&
      std::any_of(rows->begin(), rows->end(), [&](const auto& row) { return row.commit_ms >= *before_ms; }))
    return on_deleted(group, in_use(group));
  const bus::Home home = Entry::home_of(group);
  bus::Commit commit(home);
  commit.fences.push_back({home.key("generation"), epoch});
  // Many go in several Commits, the group itself with the last.
  const bool is_last = rows->size() <= kMaxRemovals;
  if (is_last) {
    commit.state.push_back({Table::kGroups, Bytes(home.prefix()), std::nullopt});
    commit.state.push_back({Table::kMeta, home.key("generation"), std::nullopt});
  } else {
    rows->resize(kMaxRemovals);
  }
  for (const CommittedOffset& offset : *rows) {
    bus::ConsumedOffset key;
    key.group = group;
    key.from = offset.at;
    commit.state.push_back({Table::kGroups, bus::offset_key(home, key), std::nullopt});
  }
  commit.done = [this, group, epoch, is_last](bus::CommitResult result) {
    if (result && !is_last) return delete_rows(group, epoch, std::nullopt);
    on_deleted(group, result ? Status() : tl::unexpected(std::move(result.error())));
  };
  log_.submit(std::move(commit));
}

void Coordinator::on_deleted(const std::string& group, const Status& status) {
  Outbox out(*this);
  std::function<void(Status)> reply;
  {
    MutexLock lock(mutex_);
    Entry& entry = *find(group);
    reply = *std::move(entry.deletion);
    entry.deletion.reset();
    entry.deleting_rows = false;
    if (status) {
      if (entry.deadline) deadlines_.erase({*entry.deadline, group});
      entries_.erase(group);
    } else {
      entry.group.revive();
      if (std::exchange(entry.retry_owed, false)) entry.retry_ms = now_ms() + kRetryMs;
      ClassicGroup::Effects none;
      settle(entry, none, out);
    }
  }
  out.deliver();
  reply(status);
}

// -------------------------------------------------------------------------------------------------------------- sweep

void Coordinator::sweep() {
  std::vector<std::string> names;
  {
    MutexLock lock(mutex_);
    if (next_sweep_ms_ > now_ms()) return;
    next_sweep_ms_ = now_ms() + std::clamp(options_.offsets_retention_ms / 10, kShortestSweepMs, kLongestSweepMs);
    auto entry = entries_.upper_bound(swept_);
    for (; entry != entries_.end() && names.size() < kGroupsPerSweep; ++entry) names.push_back(entry->first);
    swept_ = entry == entries_.end() || names.empty() ? "" : names.back();
  }
  for (const std::string& name : names) sweep_group(name, clock_.wall_ms());
}

void Coordinator::sweep_group(const std::string& group, int64_t now_wall_ms) {
  const int64_t oldest = now_wall_ms - options_.offsets_retention_ms;
  bool expired = false;
  {
    MutexLock lock(mutex_);
    Entry* entry = find(group);
    if (entry == nullptr) return;
    expired = entry->group.state() == GroupState::kEmpty && entry->empty_since_ms < oldest;
  }
  auto view = log_.view();
  auto rows = offsets(*view, group);
  if (!rows) return spdlog::error("offsets of group '{}': {}", group, to_string(rows.error()));
  std::vector<bus::TopicPartition> orphans;
  for (const CommittedOffset& offset : *rows) {
    if (offset.commit_ms >= oldest) expired = false;
    if (!view->partition(offset.at) && orphans.size() < kMaxRemovals) orphans.push_back(offset.at);
  }
  if (expired)
    return remove(group, oldest, [this, group](const Status& status) {
      if (!status) return;
      ++stats_.expired_groups;
      spdlog::info("group '{}' was empty for longer than its offsets are kept; it is forgotten", group);
    });
  if (orphans.empty()) return;
  auto commit = std::make_shared<OffsetCommit>();
  commit->group = group;
  commit->removals = std::move(orphans);
  commit->orphans = true;
  commit->reply = [](const Status&) {};  // The next sweep finds what is left.
  submit_offsets(std::move(commit));
}

}  // namespace millrace::group
