#include "tests/crash/bus/bus_on_disk.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "bus/record_batch.h"
#include "proto/bus.pb.h"

namespace millrace::bus {
namespace {

using store::Table;

struct TopicOfTest {
  const char* name;
  uint32_t partitions;
  bool compacted, retained;
};
/// Names and ids are the same in every life.
constexpr TopicOfTest kTopics[] = {
    {"kept", 2, false, false}, {"retained", 2, false, true}, {"compacted", 2, true, false}};

Uuid id_of(size_t topic) {
  Uuid id;
  id.bytes.fill(static_cast<uint8_t>(0x10 + topic));
  return id;
}

std::string timer_id(uint64_t number) {
  return fmt::format("t{}", number);
}

}  // namespace

template <typename... Args>
void BusOnDisk::fault(std::string_view format, const Args&... args) {
  if (faults_.size() < 20) faults_.push_back(fmt::format(fmt::runtime(format), args...));
}

BusOnDisk::BusOnDisk(std::filesystem::path directory, std::shared_ptr<rocksdb::FileSystem> disk, uint64_t seed)
    : directory_(std::move(directory)),
      disk_(std::move(disk)),
      random_(seed),
      home_(*Home::make(HomeKind::kGroup, "g")) {
  for (size_t topic = 0; topic < std::size(kTopics); ++topic)
    for (uint32_t i = 0; i < kTopics[topic].partitions; ++i) {
      places_.push_back({id_of(topic), i});
      partitions_[places_.back()].compacted = kTopics[topic].compacted;
      partitions_[places_.back()].retained = kTopics[topic].retained;
    }
}

BusOnDisk::~BusOnDisk() {
  crash();
}

Status BusOnDisk::open() {
  store::Options options;
  options.directory = directory_;
  options.file_system = disk_;
  options.reserve_bytes = 0;
  options.prepared_wal_bytes = 16 << 10;
  // Small, so that files are written and logs change in between.
  options.max_wal_rows = 400;
  auto store = store::Store::open(std::move(options));
  if (!store) return tl::unexpected(std::move(store.error()));
  store_ = *std::move(store);
  torn_bytes_ += store_->open_report().torn_bytes;
  CommitPipeline::Options piping;
  piping.log.segment_bytes = 3'000;
  piping.log.segment_ms = 3'600'000;
  auto pipeline = CommitPipeline::start(*store_, clock_, health_, piping);
  if (!pipeline) {
    store_.reset();
    return tl::unexpected(std::move(pipeline.error()));
  }
  pipeline_ = *std::move(pipeline);
  return {};
}

/// Each is there or not, as the last life left it.
Status BusOnDisk::create_topics() {
  for (size_t topic = 0; topic < std::size(kTopics); ++topic) {
    const TopicOfTest& wanted = kTopics[topic];
    const Home home = topic_home(wanted.name);
    auto known = pipeline_->view()->get(Table::kTopics, home.prefix());
    if (!known) return tl::unexpected(std::move(known.error()));
    if (*known) continue;
    proto::TopicRow row;
    row.set_id(Bytes(id_of(topic).view()));
    row.set_name(wanted.name);
    if (wanted.compacted) row.mutable_config()->set_cleanup_policy("compact");
    if (wanted.retained) row.mutable_config()->set_retention_bytes(4'000);
    row.mutable_config()->set_segment_bytes(3'000);
    uint32_t first = pipeline_->allocate_partition_ids(wanted.partitions);
    for (uint32_t i = 0; i < wanted.partitions; ++i) row.add_partitions(first + i);
    Commit commit(home);
    commit.state.push_back({Table::kTopics, Bytes(home.prefix()), row.SerializeAsString()});
    auto made = pipeline_->submit_and_wait(std::move(commit));
    if (!made) return tl::unexpected(std::move(made.error()));
  }
  return {};
}

BusOnDisk::Sent BusOnDisk::make(Commit& commit) {
  Sent sent;
  sent.number = next_number_++;
  const std::string number = std::to_string(sent.number);
  commit.state.push_back({Table::kGroups, home_.key("row/" + std::to_string(sent.number % 16)), number});
  commit.timers.push_back({static_cast<int64_t>(sent.number), timer_id(sent.number), number});
  // Whether its timer is there tells whether a commit was written; so only one that is settled is cancelled.
  if (!timers_.empty() && random_() % 2 == 0) {
    const auto& [id, due] = *timers_.begin();
    sent.cancels = due;
    commit.timers.push_back({static_cast<int64_t>(due), id, std::nullopt});
  }
  const TopicPartition& consumed = places_[sent.number % places_.size()];
  ConsumedOffset offset;
  offset.group = "g";
  offset.from = consumed;
  offset.next_offset = sent.number;
  commit.offsets.push_back(offset);
  for (uint64_t n = 1 + random_() % 3; n > 0; --n) {
    Written written;
    written.to = places_[random_() % places_.size()];
    written.key = "k" + std::to_string(random_() % 7);
    written.value =
        fmt::format("{}.{} {}", number, n, std::string(random_() % (random_() % 10 == 0 ? 2'000 : 120), 'v'));
    RecordView record;
    record.timestamp_ms = clock_.wall_ms();
    record.key = written.key;
    record.value = written.value;
    BatchBuilder builder;
    builder.add(record);
    commit.appends.push_back({written.to, builder.finish()});
    sent.records.push_back(std::move(written));
  }
  return sent;
}

void BusOnDisk::submit_some(size_t count) {
  std::vector<Sent> sent(count);
  std::atomic<size_t> answered{0};
  for (Sent& one : sent) {
    Commit commit(home_);
    one = make(commit);
    commit.done = [&one, &answered](CommitResult result) {
      one.result = std::move(result);
      answered.fetch_add(1, std::memory_order_release);
    };
    pipeline_->submit(std::move(commit));
  }
  // Each is answered, or the test runs into its time-out.
  while (answered.load(std::memory_order_acquire) < count) std::this_thread::yield();
  for (Sent& one : sent) {
    if (one.result) {
      if (!unknown_.empty()) fault("commit {} was acknowledged behind one that is unknown", one.number);
      for (size_t i = 0; i < one.records.size(); ++i) one.records[i].offset = one.result->appends[i].base_offset;
      apply(one);
      ++acknowledged_;
    } else if (one.result.error().kind == ErrorKind::kUnknown) {
      unknown_.push_back(std::move(one));
      ++unknown_seen_;
    } else {
      ++refused_;
    }
  }
}

void BusOnDisk::apply(const Sent& sent) {
  const std::string number = std::to_string(sent.number);
  rows_["row/" + std::to_string(sent.number % 16)] = number;
  timers_[timer_id(sent.number)] = sent.number;
  if (sent.cancels) timers_.erase(timer_id(*sent.cancels));
  offsets_[places_[sent.number % places_.size()]] = sent.number;
  for (const Written& written : sent.records) {
    Partition& partition = partitions_[written.to];
    if (written.offset != partition.next_offset)
      fault("commit {}: record at offset {} where {} was next", sent.number, written.offset, partition.next_offset);
    if (!partition.records.emplace(written.offset, written).second)
      fault("commit {}: offset {} was given twice", sent.number, written.offset);
    partition.next_offset = std::max(partition.next_offset, written.offset + 1);
  }
}

void BusOnDisk::keep() {
  LogKeeper::Options options;
  options.io_bytes_per_second = 0;
  LogKeeper keeper(*pipeline_, *store_, clock_, options);
  (void)keeper.run_once();  // On a failing disk it may fail.
  for (const std::string& damage : keeper.damages()) fault("the keeper found damage: {}", damage);
  removed_segments_ += keeper.stats().removed_segments.load();
  compacted_bytes_ += keeper.stats().compacted_bytes.load();
}

void BusOnDisk::work(int commits) {
  if (!create_topics()) return;
  const uint64_t end = next_number_ + static_cast<uint64_t>(commits);
  while (next_number_ < end && !pipeline_->failed()) {
    submit_some(1 + random_() % 6);
    clock_.advance(std::chrono::milliseconds(random_() % 1'000));
    if (random_() % 12 == 0) keep();
  }
}

bool BusOnDisk::stop() {
  bool well = pipeline_->close().has_value();
  pipeline_.reset();
  well = store_->close().has_value() && well;
  store_.reset();
  return well;
}

void BusOnDisk::crash() {
  pipeline_.reset();
  store_.reset();
}

bool BusOnDisk::is_there(const Sent& sent) {
  auto timer = pipeline_->view()->get(Table::kTimers,
                                      timer_key(home_, static_cast<int64_t>(sent.number), timer_id(sent.number)));
  return timer && *timer;
}

/// One log holds all, so what is there of them is a first part.
void BusOnDisk::settle_unknown() {
  bool gone = false;
  for (Sent& sent : unknown_) {
    if (!is_there(sent)) {
      gone = true;
      continue;
    }
    if (gone) fault("commit {} is there, one before it is not", sent.number);
    std::map<TopicPartition, uint64_t> next;
    for (Written& written : sent.records) {
      auto place = next.try_emplace(written.to, partitions_[written.to].next_offset).first;
      written.offset = place->second++;
    }
    apply(sent);
  }
  unknown_.clear();
}

void BusOnDisk::check() {
  settle_unknown();
  check_rows();
  for (auto& [place, expected] : partitions_) check_partition(place, expected);
}

void BusOnDisk::check_rows() {
  auto view = pipeline_->view();
  std::map<std::string, std::string> rows;
  std::map<std::string, uint64_t> timers;
  size_t offsets = 0;
  auto of_groups = view->list(Table::kGroups, home_.prefix(), "", 1'000'000);
  auto of_timers = view->list(Table::kTimers, home_.prefix(), "", 1'000'000);
  if (!of_groups || !of_timers) return fault("the rows cannot be read");
  for (const auto& [key, row] : *of_groups) {
    const std::string rest = key.substr(home_.prefix().size());
    if (rest.starts_with("row/"))
      rows[rest] = row.value;
    else
      ++offsets;
  }
  for (const auto& [key, row] : *of_timers) {
    const std::string rest = key.substr(home_.prefix().size());
    timers[rest.substr(8)] = load_be<uint64_t>(rest.data());
  }
  if (rows != rows_) fault("{} rows are not the {} that were written", rows.size(), rows_.size());
  if (timers != timers_) fault("{} timers are not the {} that were set", timers.size(), timers_.size());
  if (offsets != offsets_.size()) fault("{} consumed offsets instead of {}", offsets, offsets_.size());
  for (const auto& [from, next_offset] : offsets_) {
    ConsumedOffset offset;
    offset.group = "g";
    offset.from = from;
    auto row = view->get(Table::kGroups, offset_key(home_, offset));
    proto::OffsetRow parsed;
    if (!row || !*row || !parsed.ParseFromString((*row)->value) || parsed.next_offset() != next_offset)
      fault("the consumed offset {} is not there", next_offset);
  }
}

void BusOnDisk::check_partition(const TopicPartition& place, Partition& expected) {
  auto view = pipeline_->view();
  auto state = view->partition(place);
  if (!state) {
    if (expected.next_offset > 0) fault("{} is gone", describe(place));
    return;
  }
  if (state->high_watermark != expected.next_offset)
    fault("{}: the high watermark is {} instead of {}", describe(place), state->high_watermark, expected.next_offset);
  if (state->log_start < expected.log_start)
    fault("{}: the log's start went back from {} to {}", describe(place), expected.log_start, state->log_start);
  if (state->log_start > 0 && !expected.retained) fault("{}: it starts at {}", describe(place), state->log_start);
  expected.log_start = state->log_start;
  expected.records.erase(expected.records.begin(), expected.records.lower_bound(state->log_start));

  std::map<uint64_t, std::pair<std::string, std::string>> found;
  auto batches = view->fetch(place, state->log_start, 1u << 30);
  if (!batches) return fault("{}: {}", describe(place), batches.error().message);
  for (const Bytes& batch : *batches) {
    auto info = check_batch(batch);
    if (!info) return fault("{}: {}", describe(place), info.error().message);
    RecordView record;
    for (RecordReader reader(*info, batch); reader.more();) {
      if (!reader.next(record)) return fault("{}: a record cannot be read", describe(place));
      const auto offset = static_cast<uint64_t>(record.offset);
      if (offset >= state->log_start)
        found[offset] = {Bytes(record.key.value_or("")), Bytes(record.value.value_or(""))};
    }
  }
  std::map<std::string, uint64_t> last;
  for (const auto& [offset, written] : expected.records) last[written.key] = offset;
  for (const auto& [offset, written] : expected.records) {
    auto there = found.find(offset);
    if (there != found.end()) {
      if (there->second != std::pair(written.key, written.value))
        fault("{}: offset {} holds '{}' instead of '{}'", describe(place), offset, there->second.second.substr(0, 20),
              written.value.substr(0, 20));
      found.erase(there);
    } else if (!expected.compacted || last[written.key] == offset) {
      fault("{}: the record at offset {}, '{}', is lost", describe(place), offset, written.value.substr(0, 20));
    }
  }
  for (const auto& [offset, record] : found)
    fault("{}: offset {} holds '{}', which nobody was told of", describe(place), offset, record.second.substr(0, 20));
}

Status BusOnDisk::read_all() {
  auto view = pipeline_->view();
  for (Table table : {Table::kGroups, Table::kTimers, Table::kTopics})
    if (auto rows = view->list(table, "", "", 1'000'000); !rows) return tl::unexpected(std::move(rows.error()));
  for (const TopicPartition& place : places_) {
    auto state = view->partition(place);
    if (!state) continue;
    auto batches = view->fetch(place, state->log_start, 1u << 30);
    if (!batches) return tl::unexpected(std::move(batches.error()));
    for (const Bytes& batch : *batches)
      if (auto info = check_batch(batch); !info)
        return fail(ErrorKind::kCorruption, "LOG_DAMAGED", describe(place) + ": " + info.error().message);
  }
  return {};
}

}  // namespace millrace::bus
