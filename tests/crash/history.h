#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace millrace::tests {

/// Where a record lies.
using Place = std::pair<uint32_t, uint64_t>;  ///< partition, offset

/// What clients saw of a log, and what must therefore be true of it for ever: what was acknowledged lies where it was
/// said to lie, what was read once is read again, and no id is there twice. Any thread.
class History {
 public:
  /// The record `id` was acknowledged at `place`.
  void acknowledged(const std::string& id, Place place);
  /// The record `id` was read at `place`.
  void read(const std::string& id, Place place);
  /// Something else that must not be.
  void fault(std::string what);

  /// Holds the whole log, read when nothing runs any more, against everything seen. `sent` are all ids whose request
  /// was repeated until it was answered.
  void check_final(const std::map<Place, std::string>& log, const std::vector<std::string>& sent);

  std::vector<std::string> faults() const;
  size_t acknowledged_count() const;
  size_t read_count() const;

 private:
  void see(const std::string& id, Place place, std::string_view how);

  mutable std::mutex mutex_;
  std::map<Place, std::string> seen_;  ///< by whoever, however
  size_t acknowledged_ = 0, read_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace millrace::tests
