#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace millrace::bus {

/// What a Commit's rows may belong to. The numbers are on disk, in front of every key: append only.
enum class HomeKind : uint8_t {
  kTopic = 1,          ///< a topic's metadata; id: its name
  kGroup = 2,          ///< a consumer group; id: its name
  kFlowPartition = 3,  ///< id: the partition, in decimal
  kVirtualNode = 4,    ///< id: the short hash
  kChain = 5,          ///< id: empty
  kPavilion = 6,       ///< id: the gid
  kUpgrade = 7,        ///< id: empty
  kProcessor = 8,      ///< a partition of a processor; id: "<processor>/<partition>"
};

/// The one domain partition that a Commit belongs to. Every key it reads conditionally or writes starts with the
/// home's prefix, so a Commit can be carried by one writer per home (design: "Home").
class Home {
 public:
  static constexpr size_t kMaxIdBytes = 255;

  /// Errors: kInvalidArgument INVALID_HOME when the id is longer than kMaxIdBytes or has a NUL byte.
  static Result<Home> make(HomeKind kind, std::string_view id);

  HomeKind kind() const { return static_cast<HomeKind>(prefix_[0]); }
  std::string_view id() const { return std::string_view(prefix_).substr(1, prefix_.size() - 2); }
  /// kind, id, NUL: no home's prefix is a prefix of another's, and homes of a kind sort by id.
  ByteView prefix() const { return prefix_; }
  Bytes key(ByteView rest) const { return prefix_ + Bytes(rest); }
  bool owns(ByteView key) const { return key.starts_with(prefix_); }

  friend bool operator==(const Home&, const Home&) = default;

 private:
  explicit Home(Bytes prefix) : prefix_(std::move(prefix)) {}
  Bytes prefix_;
};

}  // namespace millrace::bus
