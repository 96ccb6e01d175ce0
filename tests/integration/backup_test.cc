// millrace backup against the real daemon: a backup made under load begins a new life elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/millraced.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class BackupOfANode : public testing::Test {
 protected:
  static Process::Options client(const std::string& server, std::vector<std::string> arguments, std::string input) {
    arguments.insert(arguments.begin(), {"--server", server});
    return {.arguments = std::move(arguments), .input = std::move(input)};
  }
  static std::string url_of(Process& daemon) {
    return "http://127.0.0.1:" + std::to_string(daemon.wait_for_port().value_or(0));
  }
  static std::string run(const std::string& server, std::vector<std::string> arguments, std::string input = "",
                         int exit = 0) {
    Process process(MILLRACE_PATH, client(server, std::move(arguments), std::move(input)));
    EXPECT_EQ(process.wait(), exited(exit)) << process.err();
    return exit == 0 ? process.out() : process.err();
  }
  static std::string lines(int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) text += "record " + std::to_string(i) + "\n";
    return text;
  }
  TempDir dir_;
};

TEST_F(BackupOfANode, BeginsANewLifeElsewhere) {
  Process daemon(kMillraced, daemon_on(dir_.path() / "data", {"--set", "node.name=first"}));
  const std::string server = url_of(daemon);
  run(server, {"topics", "create", "t", "--partitions", "1"});
  run(server, {"produce", "t"}, lines(0, 500));
  const Json made = Json::parse(run(server, {"--json", "backup", "create", "nightly"}));
  EXPECT_EQ(made["state"], "COMPLETE");
  EXPECT_EQ(made["node"], "first");
  const std::string path = made["path"];
  // Both nodes go on, each its own way.
  run(server, {"produce", "t"}, lines(500, 600));
  EXPECT_THAT(run(server, {"backup", "create", "nightly"}, "", 1), HasSubstr("BACKUP_EXISTS"));
  EXPECT_THAT(run(server, {"backup", "list"}), HasSubstr("nightly"));
  EXPECT_THAT(run(server, {"backup", "verify", path}), HasSubstr("sound"));
  const std::string restored = (dir_.path() / "elsewhere").string();
  EXPECT_THAT(run(server, {"backup", "restore", path, "--to", (dir_.path() / "data").string()}, "", 1),
              HasSubstr("DIRECTORY_NOT_EMPTY"));
  run(server, {"backup", "restore", path, "--to", restored});

  auto options = daemon_on(restored);
  options.arguments.insert(options.arguments.end(), {"--set", "node.name=second"});
  Process second(kMillraced, std::move(options));
  const std::string other = url_of(second);
  EXPECT_EQ(run(other, {"consume", "t"}), lines(0, 500));
  run(other, {"produce", "t"}, "of the second\n");
  EXPECT_EQ(run(other, {"consume", "t"}), lines(0, 500) + "of the second\n");
  EXPECT_EQ(run(server, {"consume", "t"}), lines(0, 600));
  second.kill();
  Process again(kMillraced, daemon_on(restored));
  EXPECT_EQ(run(url_of(again), {"consume", "t"}), lines(0, 500) + "of the second\n");

  std::ifstream config(restored + "/config-node.properties.restored");
  EXPECT_THAT((std::ostringstream() << config.rdbuf()).str(), HasSubstr("name = first"));
  run(server, {"backup", "delete", "nightly"});
  EXPECT_THAT(run(server, {"backup", "delete", "nightly"}, "", 1), HasSubstr("UNKNOWN_BACKUP"));
  EXPECT_EQ(daemon.stop(), exited(0));
}

TEST_F(BackupOfANode, ADamagedOneIsNotRestored) {
  Process daemon(kMillraced, daemon_on(dir_.path() / "data"));
  const std::string server = url_of(daemon);
  run(server, {"topics", "create", "t"});
  run(server, {"produce", "t"}, lines(0, 100));
  const std::string path = Json::parse(run(server, {"--json", "backup", "create"}))["path"];
  const std::string current = path + "/data/db/CURRENT";
  std::ofstream(current) << "MANIFEST-999999\n";
  EXPECT_THAT(run(server, {"backup", "verify", path}, "", 1), HasSubstr(current));
  EXPECT_THAT(run(server, {"backup", "restore", path, "--to", (dir_.path() / "new").string()}, "", 1),
              HasSubstr("BACKUP_DAMAGED"));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "new"));
  EXPECT_THAT(run(server, {"backup", "verify", dir_.path().string()}, "", 1), HasSubstr("UNKNOWN_BACKUP"));
  EXPECT_THAT(run(server, {"backup", "create", "a/b"}, "", 1), HasSubstr("INVALID_BACKUP_NAME"));
}

TEST_F(BackupOfANode, MayLieOnAnotherFileSystem) {
  const std::filesystem::path other = "/dev/shm" / dir_.path().filename();
  const auto gone = std::shared_ptr<void>(nullptr, [&](void*) { std::filesystem::remove_all(other); });
  std::filesystem::create_directories(other / "killed.incomplete/data");
  std::ofstream(other / "killed.incomplete/unfinished");
  Process daemon(kMillraced, daemon_on(dir_.path() / "data", {"--set", "storage.backupDirectory=" + other.string()}));
  const std::string server = url_of(daemon);
  run(server, {"topics", "create", "t"});
  run(server, {"produce", "t"}, lines(0, 100));
  run(server, {"backup", "create", "one"});
  EXPECT_FALSE(std::filesystem::exists(other / "killed.incomplete"));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "data/backup.staging"));
  run(server, {"backup", "verify", other / "one"});
  run(server, {"backup", "restore", other / "one", "--to", dir_.path() / "new"});
  run(server, {"backup", "delete", "one"});
  EXPECT_THAT(run(server, {"backup", "list"}), testing::Not(HasSubstr("one")));
  EXPECT_EQ(daemon.stop(), exited(0));
  Process restored(kMillraced, daemon_on(dir_.path() / "new"));
  EXPECT_EQ(run(url_of(restored), {"consume", "t"}), lines(0, 100));
  Process again(kMillraced, daemon_on(dir_.path() / "data", {"--set", "storage.backupDirectory=" + other.string()}));
  url_of(again);
  EXPECT_EQ(again.stop(), exited(0));
  EXPECT_TRUE(std::filesystem::is_empty(other)) << "what was deleted is cleared by then";
}

TEST_F(BackupOfANode, TheNumberIsBounded) {
  Process daemon(kMillraced, daemon_on(dir_.path() / "data", {"--set", "storage.maxBackups=1"}));
  const std::string server = url_of(daemon);
  run(server, {"backup", "create", "one"});
  EXPECT_THAT(run(server, {"backup", "create", "two"}, "", 1), HasSubstr("TOO_MANY_BACKUPS"));
}

}  // namespace
}  // namespace millrace::tests
