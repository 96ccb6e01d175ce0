#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "tests/integration/millraced.h"
#include "tests/support/temp_dir.h"

namespace millrace::tests {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class DaemonCli : public testing::Test {
 protected:
  /// Runs to the end.
  Process& run(std::vector<std::string> arguments) {
    Process::Options options;
    options.arguments = std::move(arguments);
    process_ = std::make_unique<Process>(kMillraced, options);
    status_ = process_->wait();
    return *process_;
  }
  std::string file(const std::string& text, const std::string& name = "node.properties") {
    std::ofstream(dir_.path() / name) << text;
    return (dir_.path() / name).string();
  }
  std::string data() const { return (dir_.path() / "data").string(); }

  TempDir dir_;
  std::unique_ptr<Process> process_;
  std::optional<ExitStatus> status_;
};

TEST_F(DaemonCli, VersionNamesWhatItIsMadeOf) {
  std::string out = run({"--version"}).out();
  EXPECT_EQ(status_, exited(0));
  EXPECT_THAT(out, MatchesRegex("millraced [0-9.]+ \\(revision [^,]+, .+\\), RocksDB [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(out, HasSubstr(std::string(version())));
  EXPECT_THAT(out, HasSubstr(std::string(build_type())));
}

TEST_F(DaemonCli, HelpSaysWhatTheOptionsAndExitCodesAre) {
  std::string out = run({"--help"}).out();
  EXPECT_EQ(status_, exited(0));
  for (const char* text :
       {"--config", "--data", "--set", "--check-config", "--print-config", "--version", "78 configuration"})
    EXPECT_THAT(out, HasSubstr(text));
}

TEST_F(DaemonCli, AWrongCommandLineIsExitCode64) {
  using Arguments = std::vector<std::string>;
  for (const Arguments& arguments :
       {Arguments{"--nonsense"}, Arguments{"stray"}, Arguments{"--config"}, Arguments{"--config", ""},
        Arguments{"--data", ""}, Arguments{"--set"}, Arguments{"--check-config", "--print-config"}}) {
    EXPECT_NE(run(arguments).err(), "");
    EXPECT_EQ(status_, exited(64)) << arguments.front();
  }
}

TEST_F(DaemonCli, CheckConfigTakesAGoodFileAndTouchesNothing) {
  std::string good = file("[node]\nlogLevel = debug\n");
  EXPECT_EQ(run({"--config", good, "--data", data(), "--check-config"}).out(), "the configuration is valid\n");
  EXPECT_EQ(status_, exited(0));
  EXPECT_FALSE(std::filesystem::exists(data()));
}

TEST_F(DaemonCli, CheckConfigNamesEveryFaultWithFileLineAndKey) {
  std::string bad = file("[node]\nlogLevl = debug\n[http]\nidleTimeout = 60\n[htp]\n");
  std::string err = run({"--config", bad, "--set", "bus.maxTopics=0", "--check-config"}).err();
  EXPECT_EQ(status_, exited(78));
  EXPECT_EQ(process_->out(), "");
  EXPECT_EQ(err, bad + ":2: [node] logLevl: unknown key; did you mean 'logLevel'?\n" +  //
                     bad +
                     ":4: [http] idleTimeout: '60' has no unit; write one of ms, s, m, h, d behind it, as in 30s\n" +
                     bad + ":5: [htp]: unknown section; did you mean 'http'?\n" +
                     "--set: [bus] maxTopics: 0 is out of range; allowed are 1 to 1'000'000\n");
}

TEST_F(DaemonCli, ABadConfigurationStopsTheStart) {
  EXPECT_THAT(run({"--config", file("[node]\nfoo = 1\n"), "--data", data()}).err(),
              HasSubstr(":2: [node] foo: unknown key"));
  EXPECT_EQ(status_, exited(78));
  EXPECT_FALSE(std::filesystem::exists(data()));
  EXPECT_THAT(run({"--data", data(), "--set", "storage.maxWalSize=64"}).err(),
              HasSubstr("--set: [storage] maxWalSize: '64' has no unit"));
  EXPECT_EQ(status_, exited(78));
  EXPECT_THAT(run({"--config", (dir_.path() / "missing").string()}).err(),
              HasSubstr("missing: cannot be read: No such file"));
  EXPECT_EQ(status_, exited(78));
}

TEST_F(DaemonCli, PrintConfigShowsOriginsAndCanBeFedBack) {
  std::string first = run({"--config", file("[node]\nname = the mill\n"), "--data", data(), "--set", "http.ioThreads=3",
                           "--print-config"})
                          .out();
  EXPECT_EQ(status_, exited(0));
  EXPECT_THAT(first, HasSubstr("node.properties:2\nname = the mill\n"));
  EXPECT_THAT(first, HasSubstr("# --set\nioThreads = 3\n"));
  EXPECT_THAT(first, HasSubstr("# --data\ndataDirectory = " + data() + "\n"));
  std::string second = run({"--config", file(first, "second"), "--print-config"}).out();
  EXPECT_EQ(status_, exited(0));
  auto without_comments = [](const std::string& text) {
    std::istringstream in(text);
    std::string out, line;
    while (std::getline(in, line))
      if (!line.starts_with('#')) out += line + "\n";
    return out;
  };
  EXPECT_EQ(without_comments(second), without_comments(first));
}

TEST_F(DaemonCli, AnAnswerThatCannotBeWrittenIsAnError) {
  Process::Options options;
  options.arguments = {"-c", "exec " + kMillraced.string() + " --print-config >/dev/full"};
  EXPECT_EQ(Process("/bin/sh", options).wait(), exited(74));
}

TEST_F(DaemonCli, ASecondDaemonOnTheDirectoryIsToldWhoHasIt) {
  Process first(kMillraced, daemon_on(data()));
  ASSERT_TRUE(first.wait_for_err("ready"));
  Process second(kMillraced, daemon_on(data()));
  EXPECT_EQ(second.wait(), exited(75));
  EXPECT_THAT(second.err(), HasSubstr("STORE_IN_USE: the data directory " + data() + " is in use by process " +
                                      std::to_string(first.pid())));
  EXPECT_EQ(first.stop(), exited(0));
  Process third(kMillraced, daemon_on(data()));
  EXPECT_TRUE(third.wait_for_err("ready"));
}

TEST_F(DaemonCli, AKilledDaemonLeavesNoLockBehind) {
  Process first(kMillraced, daemon_on(data()));
  ASSERT_TRUE(first.wait_for_err("ready"));
  EXPECT_EQ(first.kill(), killed_by(SIGKILL));
  Process second(kMillraced, daemon_on(data()));
  EXPECT_TRUE(second.wait_for_err("ready"));
  EXPECT_EQ(second.stop(), exited(0));
}

TEST_F(DaemonCli, ADamagedStoreIsStartedOnlyOnTheOperatorsWord) {
  {
    Process first(kMillraced, daemon_on(data()));
    ASSERT_TRUE(first.wait_for_err("ready"));
    first.kill();
  }
  const auto witness = std::filesystem::path(data()) / "witness";
  ASSERT_TRUE(std::filesystem::remove(witness));
  Process refused(kMillraced, daemon_on(data()));
  EXPECT_NE(refused.wait(), exited(0));
  EXPECT_THAT(refused.err(), HasSubstr("STORE_DAMAGED"));
  EXPECT_THAT(refused.err(), HasSubstr("start once with --accept-loss"));
  Process accepting(kMillraced, daemon_on(data(), {"--accept-loss"}));
  EXPECT_TRUE(accepting.wait_for_err("ready")) << accepting.err();
  EXPECT_EQ(accepting.stop(), exited(0));
  Process again(kMillraced, daemon_on(data()));
  EXPECT_TRUE(again.wait_for_err("ready")) << again.err();
}

TEST_F(DaemonCli, ADataDirectoryThatCannotBeMadeIsExitCode74) {
  std::string blocker = file("");
  Process process(kMillraced, daemon_on(blocker + "/data"));
  EXPECT_EQ(process.wait(), exited(74));
  EXPECT_THAT(process.err(), HasSubstr("cannot create the data directory " + blocker + "/data: Not a directory"));
}

TEST_F(DaemonCli, TooFewOpenFilesAreWarnedOf) {
  auto options = daemon_on(data());
  options.limits = {{RLIMIT_NOFILE, 256}};
  Process process(kMillraced, options);
  EXPECT_TRUE(process.wait_for_err("only 256 files may be open, too few for http.maxConnections (2048)"));
}

TEST_F(DaemonCli, JsonLogsAreOneObjectALine) {
  Process process(kMillraced, daemon_on(data(), {"--set", "node.logFormat=json"}));
  ASSERT_TRUE(process.wait_for_err("\"ready\""));
  EXPECT_EQ(process.stop(), exited(0));
  std::istringstream lines(process.err());
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    auto json = nlohmann::json::parse(line);
    EXPECT_TRUE(json.contains("time") && json.contains("level") && json.contains("thread") && json.contains("message"))
        << line;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace millrace::tests
