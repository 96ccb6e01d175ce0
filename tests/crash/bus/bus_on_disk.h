#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "bus/commit_pipeline.h"
#include "bus/log_keeper.h"
#include "store/store.h"

namespace rocksdb {
class FileSystem;
}

namespace millrace::bus {

/// A bus on a disk of the test's choice, a random load on it, and everything that its clients were told. check() holds
/// what is there against that: whatever was acknowledged is there, whole and where it was said to be; of what was
/// answered "unknown", a first part is there, each commit whole or not at all; nothing is there twice.
///
/// Every commit `n` writes a row, a timer, a consumed offset and one to three records, so that a piece of it that
/// appears without the others is seen. Some topics lose old records to retention, some are compacted; the log keeper
/// runs between commits. One thread.
class BusOnDisk {
 public:
  BusOnDisk(std::filesystem::path directory, std::shared_ptr<rocksdb::FileSystem> disk, uint64_t seed);
  ~BusOnDisk();

  /// Opens the store and the pipeline on it. Errors: theirs.
  Status open();
  /// Submits commits, in groups, until so many were answered or the node has failed.
  void work(int commits);
  /// In order; false when something in it failed, as it may on a failing disk.
  bool stop();
  /// As after SIGKILL.
  void crash();

  /// On an open bus: settles what was unknown, then compares. What is wrong is added to faults().
  void check();
  /// Reads everything there is, without comparing; the first error, if there is one.
  Status read_all();

  bool is_open() const { return pipeline_ != nullptr; }
  CommitPipeline& pipeline() { return *pipeline_; }
  store::Store& store() { return *store_; }
  const std::vector<std::string>& faults() const { return faults_; }

  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t unknown_commits() const { return unknown_seen_; }
  uint64_t refused() const { return refused_; }
  uint64_t torn_bytes() const { return torn_bytes_; }  ///< that starts reported, together
  uint64_t removed_segments() const { return removed_segments_; }
  uint64_t compacted_bytes() const { return compacted_bytes_; }

  /// The next open() finds the directory elsewhere.
  void move_to(std::filesystem::path directory) { directory_ = std::move(directory); }

 private:
  struct Written {
    TopicPartition to;
    std::string key, value;
    uint64_t offset = 0;  ///< when known
  };
  struct Sent {
    uint64_t number = 0;
    std::vector<Written> records;
    std::optional<uint64_t> cancels;  ///< the timer of that commit
    CommitResult result;
  };
  struct Partition {
    std::map<uint64_t, Written> records;  ///< by offset
    uint64_t log_start = 0;
    uint64_t next_offset = 0;
    bool compacted = false, retained = false;
  };

  Status create_topics();
  Sent make(Commit& commit);
  void submit_some(size_t count);
  void keep();
  void settle_unknown();
  void apply(const Sent& sent);
  void check_rows();
  void check_partition(const TopicPartition& place, Partition& expected);
  bool is_there(const Sent& sent);
  template <typename... Args>
  void fault(std::string_view format, const Args&... args);

  std::filesystem::path directory_;
  const std::shared_ptr<rocksdb::FileSystem> disk_;
  std::mt19937_64 random_;
  ManualClock clock_;
  Health health_{clock_};
  const Home home_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<CommitPipeline> pipeline_;

  // What must be there.
  std::vector<TopicPartition> places_;
  std::map<TopicPartition, Partition> partitions_;
  std::map<std::string, std::string> rows_;
  std::map<std::string, uint64_t> timers_;  ///< id -> due
  std::map<TopicPartition, uint64_t> offsets_;
  std::vector<Sent> unknown_;  ///< in the order of their submission
  uint64_t next_number_ = 1;
  std::vector<std::string> faults_;
  uint64_t acknowledged_ = 0, unknown_seen_ = 0, refused_ = 0, torn_bytes_ = 0, removed_segments_ = 0,
           compacted_bytes_ = 0;
};

}  // namespace millrace::bus
