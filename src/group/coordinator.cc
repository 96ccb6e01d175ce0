#include "group/coordinator.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "group/coordinator_entry.h"
#include "proto/bus.pb.h"
#include "proto/group.pb.h"

namespace millrace::group {
namespace {

using store::Table;

JoinAnswer refused_join(const JoinRequest& request, Error why) {
  JoinAnswer answer;
  answer.error = std::move(why);
  answer.member_id = request.member_id;
  return answer;
}

}  // namespace

Coordinator::Coordinator(bus::CommitLog& log, const Clock& clock, Options options)
    : log_(log), clock_(clock), options_(std::move(options)) {}
/// What waits may own holds, whose end asks this object once more.
Coordinator::~Coordinator() {
  decltype(joins_) joins;
  decltype(syncs_) syncs;
  std::vector<std::function<void()>> wakes;
  MutexLock lock(mutex_);
  joins.swap(joins_);
  syncs.swap(syncs_);
  for (auto& [name, entry] : entries_)
    for (auto& [id, held] : entry->holds) wakes.push_back(std::move(held.wake));
}

Result<std::unique_ptr<Coordinator>> Coordinator::start(bus::CommitLog& log, const Clock& clock, Options options) {
  std::unique_ptr<Coordinator> made(new Coordinator(log, clock, std::move(options)));
  MILLRACE_TRY(made->load());
  return made;
}

/// One seek for each group: what follows its own row, its offsets, is jumped over.
Status Coordinator::load() {
  const Bytes all(1, static_cast<char>(bus::HomeKind::kGroup));
  auto view = log_.view();
  const int64_t now = now_ms();
  MutexLock lock(mutex_);
  for (Bytes after;;) {
    auto rows = view->list(Table::kGroups, all, after, 1);
    if (!rows) return tl::unexpected(std::move(rows.error()));
    if (rows->empty()) return {};
    const Bytes& key = rows->front().first;
    const Bytes home = key.substr(0, key.find('\0') + 1);
    if (key == home) {
      proto::GroupRow row;
      if (!row.ParseFromString(rows->front().second.value))
        return fail(ErrorKind::kCorruption, "INVALID_GROUP_ROW", fmt::format("group {} cannot be read", to_hex(key)));
      auto entry = std::make_unique<Entry>(row.name(), ClassicGroup::from(now, row, options_.limits));
      entry->exists = true;
      entry->durable_generation = row.generation();
      entry->empty_since_ms = row.changed_ms();
      if (auto deadline = entry->group.next_deadline()) {
        entry->deadline = *deadline;
        deadlines_.emplace(*deadline, row.name());
      }
      entries_[row.name()] = std::move(entry);
    }
    // Behind everything of this home: its offsets begin with its name, which is UTF-8.
    after = home + '\xff';
  }
}

Coordinator::Entry* Coordinator::find(const std::string& group) const {
  auto found = entries_.find(group);
  return found == entries_.end() ? nullptr : found->second.get();
}

Result<Coordinator::Entry*> Coordinator::obtain(const std::string& group) {
  if (Entry* known = find(group)) return known;
  MILLRACE_TRY(check_group_name(group));
  if (entries_.size() >= options_.max_groups)
    return fail(ErrorKind::kExhausted, "TOO_MANY_GROUPS",
                fmt::format("{} consumer groups are kept; no more are taken", entries_.size()));
  auto entry = std::make_unique<Entry>(group, ClassicGroup(group, options_.limits));
  entry->empty_since_ms = clock_.wall_ms();
  return (entries_[group] = std::move(entry)).get();
}

// ------------------------------------------------------------------------------------------------------------ members

void Coordinator::join(const std::string& group, const JoinRequest& request, std::function<void(JoinAnswer)> reply) {
  Outbox out(*this);
  {
    MutexLock lock(mutex_);
    auto entry = obtain(group);
    if (!entry) {
      out.add([reply = std::move(reply), answer = refused_join(request, std::move(entry.error()))] { reply(answer); });
    } else {
      const uint64_t ticket = next_ticket_++;
      joins_[ticket] = std::move(reply);
      ClassicGroup::Effects effects;
      const std::string& stem = request.instance_id ? *request.instance_id : request.client_id;
      (*entry)->group.join(now_ms(), ticket, request, stem.substr(0, 128) + "-" + Uuid::random().to_string(), effects);
      settle(**entry, effects, out);
    }
  }
  out.deliver();
}

void Coordinator::sync(const std::string& group, const SyncRequest& request, std::function<void(SyncAnswer)> reply) {
  Outbox out(*this);
  {
    MutexLock lock(mutex_);
    Entry* entry = find(group);
    if (entry == nullptr) {
      SyncAnswer answer;
      answer.error = unknown_group(group);
      answer.error->code = "UNKNOWN_MEMBER_ID";
      out.add([reply = std::move(reply), answer] { reply(answer); });
    } else {
      const uint64_t ticket = next_ticket_++;
      syncs_[ticket] = std::move(reply);
      ClassicGroup::Effects effects;
      entry->group.sync(now_ms(), ticket, request, effects);
      settle(*entry, effects, out);
    }
  }
  out.deliver();
}

Status Coordinator::heartbeat(const std::string& group, const MemberIdentity& who) {
  Outbox out(*this);
  Status status;
  {
    MutexLock lock(mutex_);
    Entry* entry = find(group);
    if (entry == nullptr) return tl::unexpected(unknown_member(group, who.member_id));
    status = entry->group.heartbeat(now_ms(), who);
    ClassicGroup::Effects none;
    settle(*entry, none, out);
  }
  out.deliver();
  return status;
}

Status Coordinator::leave(const std::string& group, const MemberIdentity& who) {
  Outbox out(*this);
  Status status;
  {
    MutexLock lock(mutex_);
    Entry* entry = find(group);
    if (entry == nullptr) return tl::unexpected(unknown_member(group, who.member_id));
    ClassicGroup::Effects effects;
    status = entry->group.leave(now_ms(), who, effects);
    settle(*entry, effects, out);
  }
  out.deliver();
  return status;
}

void Coordinator::rebalance(const std::string& group) {
  Outbox out(*this);
  {
    MutexLock lock(mutex_);
    Entry* entry = find(group);
    if (entry == nullptr) return;
    ClassicGroup::Effects effects;
    entry->group.rebalance(now_ms(), effects);
    settle(*entry, effects, out);
  }
  out.deliver();
}

/// Takes what an input came to into the outbox, and keeps the books: deadlines, holds, empty groups nobody needs.
void Coordinator::settle(Entry& entry, ClassicGroup::Effects& effects, Outbox& out) {
  for (auto& [ticket, answer] : effects.joins)
    if (auto reply = joins_.extract(ticket))
      out.add([reply = std::move(reply.mapped()), answer = std::move(answer)] { reply(answer); });
  for (auto& [ticket, answer] : effects.syncs)
    if (auto reply = syncs_.extract(ticket))
      out.add([reply = std::move(reply.mapped()), answer = std::move(answer)] { reply(answer); });
  if (const uint64_t rebalances = entry.group.rebalances(); rebalances != entry.rebalances) {
    stats_.rebalances += rebalances - entry.rebalances;
    entry.rebalances = rebalances;
  }
  if (effects.persist) {
    if (entry.group.state() == GroupState::kEmpty) entry.empty_since_ms = clock_.wall_ms();
    start_persist(entry, out);
  }
  for (auto hold = entry.holds.begin(); hold != entry.holds.end();) {
    Entry::Held& held = hold->second;
    const bool stands = entry.group.state() == GroupState::kStable && entry.group.generation() == held.generation &&
                        entry.group.has_member(held.member);
    if (stands || !held.wake) {
      ++hold;
      continue;
    }
    out.add(std::exchange(held.wake, nullptr));
    ++hold;
  }

  std::optional<int64_t> deadline = entry.group.next_deadline();
  if (entry.retry_ms && (!deadline || *entry.retry_ms < *deadline)) deadline = entry.retry_ms;
  if (deadline != entry.deadline) {
    if (entry.deadline) deadlines_.erase({*entry.deadline, entry.name});
    if (deadline) deadlines_.emplace(*deadline, entry.name);
    entry.deadline = deadline;
  }
  if (deadline && *deadline < told_ms_) {
    told_ms_ = *deadline;
    if (options_.wake_at) out.add([this, at = *deadline] { options_.wake_at(at); });
  }
  // Somebody asked and never came, or asked for what does not exist.
  if (entry.group.state() == GroupState::kEmpty && !entry.exists && !deadline && entry.idle()) {
    const std::string name = entry.name;
    entries_.erase(name);
  }
}

void Coordinator::start_persist(Entry& entry, Outbox& out) {
  if (entry.persisting) {
    entry.persist_wanted = true;
    return;
  }
  // Its row would come behind the one that deletes it.
  if (entry.deleting_rows) {
    entry.retry_owed = true;
    return;
  }
  entry.persisting = true;
  entry.persist_wanted = false;
  entry.retry_ms.reset();
  const uint64_t revision = entry.group.revision();
  const int32_t generation = entry.group.generation();
  bus::Commit commit(entry.home);
  commit.fences.push_back({entry.lease(), static_cast<uint64_t>(entry.durable_generation)});
  add_rows(entry, clock_.wall_ms(), commit);
  commit.done = [this, name = entry.name, revision, generation](bus::CommitResult result) {
    on_persisted(name, revision, generation, result ? Status() : tl::unexpected(std::move(result.error())));
  };
  out.submit(std::move(commit));
}

void Coordinator::on_persisted(const std::string& group, uint64_t revision, int32_t generation, const Status& status) {
  Outbox out(*this);
  {
    MutexLock lock(mutex_);
    Entry& entry = *find(group);
    entry.persisting = false;
    if (status) {
      entry.exists = true;
      entry.durable_generation = generation;
      entry.failures = 0;
    } else {
      // Once until it succeeds: where the disk is full the log file is not to grow.
      if (entry.failures++ == 0) spdlog::warn("group '{}' could not be written: {}", group, to_string(status.error()));
      if (entry.deletion)
        entry.retry_owed = true;
      else
        entry.retry_ms = now_ms() + kRetryMs * std::min(entry.failures, kMaxRetryFactor);
    }
    ClassicGroup::Effects effects;
    entry.group.persisted(now_ms(), revision, status, effects);
    if (entry.persist_wanted) effects.persist = true;
    if (entry.deletion) try_delete(entry, out);
    settle(entry, effects, out);
  }
  out.deliver();
}

// --------------------------------------------------------------------------------------------------------------- time

int64_t Coordinator::run_due() {
  sweep();
  Outbox out(*this);
  int64_t next = 0;
  {
    MutexLock lock(mutex_);
    const int64_t now = now_ms();
    told_ms_ = INT64_MIN;  // nobody needs to be woken for what this turn finds
    // Each once: a deadline that is over again is for the next turn.
    std::vector<std::string> due;
    for (auto deadline = deadlines_.begin(); deadline != deadlines_.end() && deadline->first <= now; ++deadline)
      due.push_back(deadline->second);
    for (const std::string& name : due) {
      Entry& entry = *find(name);
      ClassicGroup::Effects effects;
      entry.group.expire(now, effects);
      if (entry.retry_ms && *entry.retry_ms <= now) {
        entry.retry_ms.reset();
        effects.persist = true;
      }
      settle(entry, effects, out);
    }
    next = deadlines_.empty() ? next_sweep_ms_ : std::min(next_sweep_ms_, deadlines_.begin()->first);
    told_ms_ = next;
  }
  out.deliver();
  return next;
}

struct Coordinator::HoldImpl final : Coordinator::Hold {
  HoldImpl(Coordinator& c, std::string g, std::string m, uint64_t i)
      : coordinator(c), group(std::move(g)), member(std::move(m)), id(i) {}
  ~HoldImpl() override { coordinator.release(group, member, id); }
  Coordinator& coordinator;
  const std::string group, member;
  const uint64_t id;
};

std::unique_ptr<Coordinator::Hold> Coordinator::hold(const std::string& group, const std::string& member,
                                                     int32_t generation, std::function<void()> wake) {
  Outbox out(*this);
  uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    id = next_ticket_++;
    if (Entry* entry = find(group)) {
      entry->holds[id] = {member, generation, std::move(wake)};
      entry->group.hold(member);
      ClassicGroup::Effects none;
      settle(*entry, none, out);
    } else {
      out.add(std::move(wake));
    }
  }
  auto made = std::make_unique<HoldImpl>(*this, group, member, id);
  out.deliver();
  return made;
}

void Coordinator::release(const std::string& group, const std::string& member, uint64_t id) {
  Outbox out(*this);
  {
    MutexLock lock(mutex_);
    Entry* entry = find(group);
    if (entry == nullptr || entry->holds.erase(id) == 0) return;
    entry->group.release(now_ms(), member);
    ClassicGroup::Effects none;
    settle(*entry, none, out);
  }
  out.deliver();
}

// ---------------------------------------------------------------------------------------------------- what others see

Result<GroupInfo> Coordinator::describe(const std::string& group) const {
  MutexLock lock(mutex_);
  Entry* entry = find(group);
  if (entry == nullptr) return tl::unexpected(unknown_group(group));
  return entry->group.describe();
}

std::vector<Coordinator::Summary> Coordinator::list(const std::string& after, size_t limit) const {
  std::vector<Summary> found;
  MutexLock lock(mutex_);
  for (auto entry = entries_.upper_bound(after); entry != entries_.end() && found.size() < limit; ++entry) {
    const ClassicGroup& group = entry->second->group;
    found.push_back({entry->first, group.state(), group.protocol_type(), group.size(), group.generation()});
  }
  return found;
}

Result<Coordinator::Standing> Coordinator::standing(const std::string& group, const std::string& member) const {
  MutexLock lock(mutex_);
  Entry* entry = find(group);
  if (entry == nullptr) return tl::unexpected(unknown_group(group));
  auto info = entry->group.member(member);
  if (!info) return tl::unexpected(entry->group.missing(member));
  return Standing{entry->group.state(), entry->group.generation(), entry->group.protocol(),
                  entry->group.leader() == member, *std::move(info)};
}

size_t Coordinator::members() const {
  size_t count = 0;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) count += entry->group.size();
  return count;
}

size_t Coordinator::groups() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace millrace::group
