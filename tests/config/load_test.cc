#include "config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "config/key.h"
#include "config/properties.h"
#include "tests/support/random_seed.h"
#include "tests/support/temp_dir.h"

namespace millrace::config {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

Environment test_environment() {
  Environment environment;
  environment.host_name = "mill";
  environment.working_directory = "/srv";
  environment.home = "/home/miller";
  return environment;
}

tl::expected<Loaded, Faults> load_string(std::string_view text, std::vector<Override> overrides = {}) {
  return load_text(text, "node.properties", overrides, test_environment());
}

/// The faults as lines; empty when there are none.
std::vector<std::string> faults_of(const tl::expected<Loaded, Faults>& loaded) {
  std::vector<std::string> lines;
  if (!loaded)
    for (const Fault& fault : loaded.error()) lines.push_back(to_string(fault));
  return lines;
}
std::vector<std::string> faults_in(std::string_view text) {
  return faults_of(load_string(text));
}

TEST(Load, WithoutAFileEverythingIsAtItsDefault) {
  auto loaded = load_text(std::nullopt, "", {}, test_environment());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->config.node.name, "mill");
  EXPECT_EQ(loaded->config.node.data_directory, "/home/miller/.local/state/millrace");
  EXPECT_EQ(loaded->config.http.unix_socket_path(), "/home/miller/.local/state/millrace/millrace.sock");
  EXPECT_EQ(loaded->config.bus.commit_ring_slot_count, 4096u);
  EXPECT_TRUE(loaded->origins.empty());
}

TEST(Load, FillsTheStructsAndRemembersWhereFrom) {
  auto loaded = load_string(
      "# comment\n"
      "[node]\n"
      "  name =  the mill  \n"
      "logLevel=debug\n"
      "\n"
      "[storage]\n"
      "commitDurability = async\n"
      "[bus]\n"
      "commitRingSlotCount = 8'192\n"
      "segmentRollAfter = 12h\n"
      "commitLead = false\n"
      "[http]\n"
      "listen = 127.0.0.1:0, [::1]:8081\n"
      "maxBodySize = 1MB\n"
      "allowedOrigins = https://console.example, http://[::1]:3000\n",
      {{"--set", "http.ioThreads=4"}, {"--data", "node.dataDirectory=data"}});
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  const Config& c = loaded->config;
  EXPECT_EQ(c.node.name, "the mill");
  EXPECT_EQ(c.node.log_level, LogLevel::kDebug);
  EXPECT_EQ(c.node.data_directory, "/srv/data");
  EXPECT_EQ(c.storage.commit_durability, CommitDurability::kAsync);
  EXPECT_EQ(c.bus.commit_ring_slot_count, 8192u);
  EXPECT_EQ(c.bus.segment_roll_after, 12h);
  EXPECT_FALSE(c.bus.commit_lead);
  EXPECT_THAT(c.http.listen, ElementsAre(Endpoint{"127.0.0.1", 0}, Endpoint{"::1", 8081}));
  EXPECT_EQ(c.http.max_body_bytes, 1u << 20);
  EXPECT_THAT(c.http.allowed_origins, ElementsAre("https://console.example", "http://[::1]:3000"));
  EXPECT_EQ(c.http.io_threads, 4u);
  EXPECT_EQ(to_string(loaded->origin_of("node.logLevel")), "node.properties:4");
  EXPECT_EQ(to_string(loaded->origin_of("http.ioThreads")), "--set");
  EXPECT_EQ(to_string(loaded->origin_of("node.dataDirectory")), "--data");
  EXPECT_EQ(to_string(loaded->origin_of("http.idleTimeout")), "default");
}

TEST(Load, AnOverrideBeatsTheFile) {
  auto loaded = load_string("[node]\nname = file\n", {{"--set", "node.name=set"}});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->config.node.name, "set");
  EXPECT_EQ(loaded->origin_of("node.name").source, "--set");
}

TEST(Load, WindowsFilesAreTaken) {
  auto loaded = load_string("\xef\xbb\xbf[node]\r\nname = mill\r\n");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->config.node.name, "mill");
}

TEST(Load, EveryFaultIsReportedAtOnceInTheOrderOfTheFile) {
  EXPECT_THAT(
      faults_in("[node]\n"
                "logLevl = info\n"
                "shutdownTimeout = 30\n"
                "logFormat text\n"
                "[sorage]\n"
                "anything = 1\n"
                "[bus]\n"
                "commitRingSlotCount = 4'095\n"
                "maxTopics = 0\n"
                "maxTopics = 5\n"),
      ElementsAre("node.properties:2: [node] logLevl: unknown key; did you mean 'logLevel'?",
                  "node.properties:3: [node] shutdownTimeout: '30' has no unit; write one of ms, s, m, h, d behind it, "
                  "as in 30s",
                  "node.properties:4: [node]: 'logFormat text' lacks a '='; write key = value",
                  "node.properties:5: [sorage]: unknown section; did you mean 'storage'?",
                  "node.properties:8: [bus] commitRingSlotCount: '4'095' is no power of two, such as 4'096",
                  "node.properties:9: [bus] maxTopics: 0 is out of range; allowed are 1 to 1'000'000",
                  "node.properties:10: [bus] maxTopics: the key is set twice; line 9 set it already"));
}

struct BadLine {
  const char* line;
  const char* fault;
};
void PrintTo(const BadLine& bad, std::ostream* out) {
  *out << bad.line;
}
class BadInput : public testing::TestWithParam<BadLine> {};

TEST_P(BadInput, IsOneFaultThatSaysWhatIsWrong) {
  EXPECT_THAT(faults_in(std::string("[http]\n") + GetParam().line + "\n"),
              ElementsAre(testing::AllOf(testing::StartsWith("node.properties:2: "), HasSubstr(GetParam().fault))));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, BadInput,
    testing::Values(
        BadLine{"maxbodysize = 1MB", "unknown key; did you mean 'maxBodySize'?"},
        BadLine{"logLevel = info", "[http] logLevel: unknown key; it belongs to [node]"},
        BadLine{"zzzzzzzzzzzz = info", "[http] zzzzzzzzzzzz: unknown key"}, BadLine{"= 5", "has no key before the '='"},
        BadLine{"maxBodySize", "lacks a '='"},
        BadLine{"maxBodySize =", "the value is empty; leave the key out for the default, 16MB"},
        BadLine{"maxBodySize = 600MB", "600MB is out of range; allowed are 1KB to 512MB"},
        BadLine{"ioThreads = 0", "0 is out of range; allowed are 1 to 64"},
        BadLine{"ioThreads = many", "'many' is no whole number"},
        BadLine{"ioThreads = 99999999999999999999", "is too large"},
        BadLine{"idleTimeout = 60s # a minute", "comments stand on lines of their own"},
        BadLine{"; idleTimeout = 60s", "comments start with '#', not ';'"},
        BadLine{"unixSocket = ~/socket", "begins with '~', which is not expanded here"},
        BadLine{"unixSocket = a\x01"
                "b",
                "holds a control character"},
        BadLine{"unixSocket = a\xff"
                "b",
                "is not UTF-8"},
        BadLine{"un\x1bix = 1", "'un\\x1bix' cannot be a key"}, BadLine{"[node", "'[node' is no section header"},
        BadLine{"[]", "'[]' is no section header"},
        BadLine{"[node] name = x", "is no section header; write [name] and nothing else on the line"},
        BadLine{"[no\x1b]", "is no section header"},
        BadLine{"[http]", "[http]: the section stands twice; it began on line 1 already"},
        BadLine{"[zzzzzzzzzz]", "unknown section; known are [node], [storage], [bus], [worker], [http]"},
        BadLine{"listen = 127.0.0.1", "'127.0.0.1' is no address with a port"},
        BadLine{"listen = 127.0.0.1:1,", "the list has an empty item"},
        BadLine{"listen = 0.0.0.0:8080", "0.0.0.0:8080 is not a loopback address; there is no authentication yet"},
        BadLine{"allowedHosts = http://x", "'http://x' is no host name"},
        BadLine{"allowedHosts = x:0", "'x:0' is no host name"},
        BadLine{"allowedHosts = x:8'080", "'x:8'080' is no host name"},
        BadLine{"allowedOrigins = *", "'*' is no origin"}, BadLine{"allowedOrigins = https://", "is no origin"},
        BadLine{"allowedOrigins = https://x/", "is no origin"}, BadLine{"allowedOrigins = https://x:0", "is no origin"},
        BadLine{"maxBodySize = 32MB", "32MB is more than bus.commitMaxSize (16MB)"}));

TEST(Load, AKeyBeforeAnySectionIsAFault) {
  EXPECT_THAT(faults_in("name = x\n"),
              ElementsAre("node.properties:1: name: the key stands before the first [section]"));
}

TEST(Load, ABrokenHeaderIsOneFaultNotOneAKey) {
  EXPECT_THAT(faults_in("[node\nfoo = 1\nbar = 2\n"), testing::SizeIs(1));
}

TEST(Load, NulBytesOverlongLinesAndForeignFilesAreRefused) {
  EXPECT_THAT(faults_in(std::string("[node]\n# a\0b\n", 13)),
              ElementsAre("node.properties:2: the line holds a NUL byte"));
  EXPECT_THAT(faults_in("[node]\nname = " + std::string(kMaxLineBytes, 'x') + "\nlogLevel = info\n"),
              ElementsAre("node.properties:2: the line is longer than 4096 bytes"));
  EXPECT_THAT(faults_in(std::string(kMaxFileBytes + 1, '\n')),
              ElementsAre("node.properties: the file is larger than 1MB"));
  EXPECT_TRUE(load_string(std::string(kMaxFileBytes, '\n')));
  EXPECT_THAT(faults_in(std::string("\xff\xfe[\0n\0", 6)),
              ElementsAre("node.properties: the file is UTF-16; save it as UTF-8"));
}

TEST(Load, FaultsAreBounded) {
  std::string text = "[node]\n";
  for (int i = 0; i < 1000; ++i) text += "x" + std::to_string(i) + "\n";
  EXPECT_EQ(faults_in(text).size(), kMaxFaults);
}

TEST(Load, OverridesAreCheckedTheSameWay) {
  auto faults = [](std::string assignment) { return faults_of(load_string("", {{"--set", std::move(assignment)}})); };
  EXPECT_THAT(faults("node.logLevel=loud"),
              ElementsAre("--set: [node] logLevel: 'loud' is not one of trace, debug, info, warning, error"));
  EXPECT_THAT(faults("node.logLevel=inf"), ElementsAre(HasSubstr("did you mean 'info'?")));
  EXPECT_THAT(faults("node.logLevl=info"), ElementsAre("--set: [node] logLevl: unknown key; did you mean 'logLevel'?"));
  EXPECT_THAT(faults("nod.logLevel=info"), ElementsAre("--set: [nod]: unknown section; did you mean 'node'?"));
  EXPECT_THAT(faults("http.idleTimeout=60"), ElementsAre(HasSubstr("--set: [http] idleTimeout: '60' has no unit")));
  EXPECT_THAT(faults("http.idleTimeout="), ElementsAre(HasSubstr("the value is empty")));
  for (auto text : {"", "=", "logLevel=info", "node.logLevel", "a\nb.c=1"})
    EXPECT_THAT(faults(text), testing::SizeIs(1)) << text;
  EXPECT_THAT(faults_of(load_string("", {{"--set", "node.dataDirectory=/a"}, {"--data", "node.dataDirectory=/b"}})),
              ElementsAre("--data: [node] dataDirectory: the key is set twice; --set set it already"));
}

TEST(Load, RulesBetweenKeysNameTheKeyThatWasSet) {
  EXPECT_THAT(
      faults_in("[storage]\nmaxWalSize = 8MB\n"),
      ElementsAre(
          "node.properties:2: [bus] commitMaxSize: 16MB is more than storage.maxWalSize (8MB): such a commit would "
          "not fit into the write-ahead log"));
  EXPECT_THAT(faults_in("[storage]\nmaxWalSize = 128MB\nreserveSize = 100MB\n"),
              ElementsAre(HasSubstr("maxWalSize: 128MB is more than storage.reserveSize (100MB)")));
  EXPECT_THAT(faults_in("[node]\nshutdownTimeout = 5s\n"),
              ElementsAre(HasSubstr("[http] drainTimeout: 10s is more than")));
  EXPECT_THAT(faults_in("[http]\nlisten =\nunixSocket = none\n"),
              ElementsAre(HasSubstr("nobody could reach the node")));
  EXPECT_THAT(faults_in("[node]\ndataDirectory = /" + std::string(100, 'd') + "\n"),
              ElementsAre(HasSubstr("[http] unixSocket: the path /dddd")));
}

TEST(Load, ARuleIsNotJudgedOnAKeyWithAFault) {
  // commitMaxSize could not be read, so it stands at its default, which the small log would clash with.
  EXPECT_THAT(faults_in("[storage]\nmaxWalSize = 8MB\n[bus]\ncommitMaxSize = 4\n"),
              ElementsAre(HasSubstr("'4' has no unit")));
}

TEST(Load, TheDataDirectoryNeedsSomePlace) {
  Environment nowhere;
  EXPECT_THAT(faults_of(load_text(std::nullopt, "", {}, nowhere)),
              ElementsAre(HasSubstr("neither XDG_STATE_HOME nor HOME is set")));
  nowhere.xdg_state_home = "/state";
  EXPECT_EQ(load_text(std::nullopt, "", {}, nowhere)->config.node.data_directory, "/state/millrace");
  nowhere.xdg_state_home = "relative";
  EXPECT_FALSE(load_text(std::nullopt, "", {}, nowhere));
}

TEST(Load, PathsBecomeAbsoluteAndNormal) {
  auto loaded = load_string("[node]\ndataDirectory = ../data/./x/\n[http]\nunixSocket = none\n");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->config.node.data_directory, "/data/x");
  EXPECT_EQ(loaded->config.http.unix_socket_path(), std::nullopt);
}

TEST(Load, AFileThatCannotBeReadIsAFault) {
  tests::TempDir dir;
  Sources sources{dir.path() / "missing.properties", {}, test_environment()};
  EXPECT_THAT(faults_of(load(sources)),
              ElementsAre(HasSubstr("missing.properties: cannot be read: No such file or directory")));
  sources.file = dir.path();
  EXPECT_THAT(faults_of(load(sources)), ElementsAre(HasSubstr("cannot be read: Is a directory")));
  sources.file = "/dev/zero";
  EXPECT_THAT(faults_of(load(sources)), ElementsAre("/dev/zero: the file is larger than 1MB"));
  sources.file = dir.path() / "good.properties";
  std::ofstream(*sources.file) << "[node]\nname = x";
  EXPECT_EQ(load(sources)->config.node.name, "x");
}

TEST(Print, CanBeFedBack) {
  auto first = load_string("[node]\nname = a mill\n[http]\nlisten =\nallowedHosts = x, y:80, [::1]:80\n",
                           {{"--set", "bus.commitLead=false"}});
  ASSERT_TRUE(first) << to_string(first.error());
  std::string text = print(*first);
  EXPECT_THAT(text, HasSubstr("# node.properties:2\nname = a mill\n"));
  EXPECT_THAT(text, HasSubstr("# --set\ncommitLead = false\n"));
  EXPECT_THAT(text, HasSubstr("# default\nlogLevel = info\n"));
  auto second = load_string(text);
  ASSERT_TRUE(second) << to_string(second.error());
  for (const Section& section : sections())
    for (const Key& key : section.keys) EXPECT_EQ(key.write(second->config), key.write(first->config)) << key.path();
}

TEST(Reload, AppliesWhatIsReloadableAndNamesTheRest) {
  auto running = load_string("[node]\nname = old\nlogLevel = info\n[http]\nioThreads = 2\n");
  auto fresh = load_string("[node]\nlogLevel = trace\nname = new\n[http]\nioThreads = 3\n");
  ReloadPlan plan = plan_reload(*running, *fresh);
  ASSERT_EQ(plan.applied.size(), 1u);
  EXPECT_EQ(plan.applied[0].key, "node.logLevel");
  EXPECT_EQ(plan.applied[0].from, "info");
  EXPECT_EQ(plan.applied[0].to, "trace");
  ASSERT_EQ(plan.needs_restart.size(), 2u);
  EXPECT_EQ(plan.needs_restart[0].key, "node.name");
  EXPECT_EQ(plan.needs_restart[1].key, "http.ioThreads");
  EXPECT_EQ(plan.result.config.node.log_level, LogLevel::kTrace);
  EXPECT_EQ(plan.result.config.node.name, "old");
  EXPECT_EQ(plan.result.config.http.io_threads, 2u);
  EXPECT_EQ(plan.result.origin_of("node.logLevel").line, 2);
}

TEST(Reload, WithoutAChangeDoesNothing) {
  auto loaded = load_string("");
  ReloadPlan plan = plan_reload(*loaded, *loaded);
  EXPECT_TRUE(plan.applied.empty());
  EXPECT_TRUE(plan.needs_restart.empty());
}

TEST(Load, DamagedFilesNeverDoMoreThanFail) {
  std::mt19937_64 random(tests::random_seed());
  auto loaded = load_string("");
  const std::string good = print(*loaded);
  int taken = 0, refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::string text = good;
    for (unsigned edits = random() % 8 + 1; edits > 0; --edits) {
      size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
      }
    }
    auto result = load_string(text);
    if (!result) {
      ++refused;
      EXPECT_FALSE(result.error().empty());
      continue;
    }
    ++taken;
    EXPECT_TRUE(load_string(print(*result))) << text;
  }
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace millrace::config
