#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "http/options.h"
#include "http/request_checks.h"
#include "http/router.h"
#include "http/stats.h"

namespace millrace::http {

/// How many connections there are, in all and from each address. Any thread.
class ConnectionTable {
 public:
  enum class Verdict { kAdmitted, kTooMany, kTooManyFromAddress };

  explicit ConnectionTable(const Options& options)
      : max_(options.max_connections), max_per_address_(options.max_connections_per_address) {}

  /// `address` "" is exempt from the cap of an address. What was admitted must be released.
  Verdict admit(const std::string& address) EXCLUDES(mutex_);
  void release(const std::string& address) EXCLUDES(mutex_);

 private:
  const size_t max_;
  const size_t max_per_address_;
  Mutex mutex_;
  size_t total_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, size_t> by_address_ GUARDED_BY(mutex_);
};

/// What all sessions of a server share. Only the atomics and the table change after the start.
struct ServerContext {
  ServerContext(Options server_options, std::shared_ptr<const Router> server_router, AccessPolicy server_policy);

  const Options options;
  const std::shared_ptr<const Router> router;
  const AccessPolicy policy;
  const std::shared_ptr<Stats> stats;
  ConnectionTable connections;
  /// Tells the request ids of two runs apart.
  const std::string run_id;
  std::atomic<uint64_t> next_connection{1};
  std::atomic<bool> draining{false};
  /// Connections that are being told why they are refused.
  std::atomic<int> refusing{0};
};

}  // namespace millrace::http
