#include "http/request_checks.h"

#include <gtest/gtest.h>

namespace millrace::http {
namespace {

TEST(FindHeaderEnd, ResumesWhereItStopped) {
  std::string bytes = "GET / HTTP/1.1\r\nHost: x\r\n\r\nrest";
  size_t end = bytes.size() - 4;
  for (size_t from = 0; from < end; ++from) EXPECT_EQ(find_header_end(bytes, from), end) << from;
  for (size_t size = 0; size < end; ++size)
    EXPECT_EQ(find_header_end(std::string_view(bytes).substr(0, size), 0), std::string_view::npos) << size;
}

TEST(ParseHost, TakesNamesAndAddresses) {
  EXPECT_EQ(parse_host("LocalHost:80")->host, "localhost");
  EXPECT_EQ(parse_host("LocalHost:80")->port, 80);
  EXPECT_EQ(parse_host("[::1]:80")->host, "[::1]");
  EXPECT_EQ(parse_host("[::1]")->port, std::nullopt);
  EXPECT_EQ(parse_host("a_b.example")->host, "a_b.example");
  for (const char* bad : {"", ":80", "a:", "a:x", "a:80x", "a:99999", "a:-1", "a b", "a/b", "a@b", "[::1", "[x]", "[]",
                          "[::1]80", "a,b", "a:80:80", "\xC3\xA4"})
    EXPECT_FALSE(parse_host(bad)) << bad;
}

TEST(LoopbackHost, IsOnlyThisMachine) {
  for (const char* host : {"localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "[::1]", "[0:0:0:0:0:0:0:1]"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"localhost.", "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1", "0.0.0.0",
                           "[::]", "127.1", "2130706433", "evil.example"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

class Access : public ::testing::Test {
 protected:
  std::string_view check(std::vector<std::pair<std::string, std::string>> fields, bool any_host = false) {
    Headers headers;
    for (const auto& [name, value] : fields) headers.add(name, value);
    auto refusal = policy_.check(headers, any_host);
    return refusal ? refusal->code : "";
  }

  static Options options() {
    Options options;
    options.allowed_hosts = {"millrace.lan", "pinned.lan:8480"};
    options.allowed_origins = {"https://console.example"};
    return options;
  }
  AccessPolicy policy_{options(), {"192.0.2.7"}};
};

TEST_F(Access, HostIsALoopbackNameOrConfigured) {
  EXPECT_EQ(check({{"Host", "localhost:8480"}}), "");
  EXPECT_EQ(check({{"Host", "localhost:9999"}}), "") << "a forwarded port";
  EXPECT_EQ(check({{"Host", "[::1]:8480"}}), "");
  EXPECT_EQ(check({{"Host", "192.0.2.7:8480"}}), "") << "listened on";
  EXPECT_EQ(check({{"Host", "MillRace.lan:1"}}), "");
  EXPECT_EQ(check({{"Host", "pinned.lan:8480"}}), "");
  EXPECT_EQ(check({{"Host", "pinned.lan:8481"}}), "HOST_NOT_ALLOWED");
  EXPECT_EQ(check({{"Host", "pinned.lan"}}), "HOST_NOT_ALLOWED");
  EXPECT_EQ(check({{"Host", "evil.example"}}), "HOST_NOT_ALLOWED") << "a rebound name";
  EXPECT_EQ(check({{"Host", "evil.example"}}, true), "") << "nothing to rebind on a Unix socket";
  EXPECT_EQ(check({{"Host", "a b"}}), "BAD_HOST");
}

TEST_F(Access, OriginIsThisServerOrConfigured) {
  EXPECT_EQ(check({{"Host", "localhost:8480"}, {"Origin", "http://localhost:8480"}}), "");
  EXPECT_EQ(check({{"Host", "localhost:8480"}, {"Origin", "https://console.example"}}), "");
  for (const char* origin : {"http://localhost:3000", "http://127.0.0.1:8480", "https://localhost:8480", "null", "",
                             "http://evil.example", "https://console.example.evil.example"})
    EXPECT_EQ(check({{"Host", "localhost:8480"}, {"Origin", origin}}), "ORIGIN_NOT_ALLOWED") << origin;
  EXPECT_EQ(check({{"Host", "localhost:8480"}, {"Origin", "http://localhost:8480"}, {"Origin", "null"}}),
            "ORIGIN_NOT_ALLOWED");
}

TEST(Framing, AbsoluteFormReplacesTheHost) {
  RequestHead head;
  head.target = "http://localhost:8480?limit=1";
  head.headers.add("Host", "evil.example");
  EXPECT_FALSE(take_absolute_form(head));
  EXPECT_EQ(head.target, "/?limit=1");
  EXPECT_EQ(head.headers.find("Host"), "localhost:8480");
  head.target = "http://a b/";
  EXPECT_TRUE(take_absolute_form(head));
}

}  // namespace
}  // namespace millrace::http
