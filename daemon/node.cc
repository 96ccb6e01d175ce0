#include "daemon/node.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <optional>

#include "store/store.h"

namespace millrace::daemon {
namespace {

/// Holds the data directory, and nothing more yet.
class DirectoryNode final : public Node {
 public:
  explicit DirectoryNode(store::DirectoryLock lock) : lock_(std::move(lock)) {}
  void stop() override { lock_.reset(); }
  void reload(const config::Config&) override {}

 private:
  std::optional<store::DirectoryLock> lock_;
};

}  // namespace

Result<std::unique_ptr<Node>> Node::start(const config::Config& config, Health&, OnFatal) {
  const auto& directory = config.node.data_directory;
  std::error_code error;
  bool created = std::filesystem::create_directories(directory, error);
  if (error)
    return fail(ErrorKind::kIo, "STORE_IO",
                fmt::format("cannot create the data directory {}: {}", directory.string(), error.message()));
  if (created) ::chmod(directory.c_str(), 0700);
  auto lock = store::DirectoryLock::acquire(directory);
  if (!lock) return tl::unexpected<Error>(std::move(lock.error()));
  return std::make_unique<DirectoryNode>(std::move(*lock));
}

}  // namespace millrace::daemon
