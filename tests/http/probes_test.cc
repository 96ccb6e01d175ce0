// Requests that two parties could read differently. Each is followed by a request for /v1/trap, which must never run:
// it would be the smuggled one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/http/test_server.h"

namespace millrace::http::tests {
namespace {

struct Probe {
  const char* name;
  std::string bytes;  ///< HOST stands for this server's
  int status;
};

void PrintTo(const Probe& probe, std::ostream* out) {
  *out << probe.name;
}

std::string with_host(std::string text, const std::string& host) {
  for (size_t at = text.find("HOST"); at != std::string::npos; at = text.find("HOST", at)) text.replace(at, 4, host);
  return text;
}

class Probes : public ::testing::TestWithParam<Probe> {
 protected:
  static TestServer& server() {
    static TestServer one;
    return one;
  }
};

TEST_P(Probes, IsRefusedAndWhatFollowsNeverRuns) {
  const Probe& probe = GetParam();
  int trapped = server().calls("/v1/trap");
  for (bool at_once : {true, false}) {
    RawSocket socket = server().connect();
    std::string bytes = with_host(probe.bytes, server().host()) + server().get("/v1/trap");
    if (at_once) {
      socket.send(bytes);
    } else {
      for (char c : bytes)
        if (!socket.send({&c, 1})) break;
    }
    auto answer = socket.read_answer();
    ASSERT_TRUE(answer) << probe.name;
    EXPECT_EQ(answer->status, probe.status) << answer->body;
    EXPECT_EQ(answer->field("Connection"), "close");
    EXPECT_EQ(answer->field("Content-Type"), "application/problem+json");
    socket.shutdown_write();
    EXPECT_EQ(socket.read_all(), "") << "one answer, and the end";
    EXPECT_EQ(server().calls("/v1/trap"), trapped);
  }
}

const std::string kPost = "POST /v1/echo HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n";
const std::string kGet = "GET /v1/hello HTTP/1.1\r\nHost: HOST\r\n";

std::string many_fields(int count) {
  std::string out = kGet;
  for (int i = 0; i < count; ++i) out += fmt::format("A{}: b\r\n", i);
  return out + "\r\n";
}

INSTANTIATE_TEST_SUITE_P(
    BeastAccepts, Probes,
    ::testing::Values(
        Probe{"unknown_transfer_encoding", kPost + "Transfer-Encoding: xchunked\r\n\r\n", 400},
        Probe{"gzip_chunked", kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
        Probe{"chunked_identity", kPost + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400},
        Probe{"identity", kPost + "Transfer-Encoding: identity\r\n\r\n", 400},
        Probe{"empty_transfer_encoding", kPost + "Transfer-Encoding:\r\n\r\n", 400},
        Probe{"doubled_transfer_encoding",
              kPost + "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        Probe{"chunked_and_comma", kPost + "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", 400},
        Probe{"listed_content_length", kPost + "Content-Length: 5, 5\r\n\r\nhello", 400},
        Probe{"repeated_content_length", kPost + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
        Probe{"content_length_then_unknown_encoding",
              kPost + "Content-Length: 2\r\nTransfer-Encoding: xchunked\r\n\r\n{}", 400},
        Probe{"folded_field", kGet + "X: a\r\n b\r\n\r\n", 400},
        Probe{"folded_with_tab", kGet + "X: a\r\n\tb\r\n\r\n", 400},
        Probe{"folded_transfer_encoding", kPost + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
        Probe{"folded_first_field", "GET /v1/hello HTTP/1.1\r\n X: a\r\nHost: HOST\r\n\r\n", 400},
        Probe{"no_host", "GET /v1/hello HTTP/1.1\r\n\r\n", 400}, Probe{"two_hosts", kGet + "Host: HOST\r\n\r\n", 400},
        Probe{"malformed_host", "GET /v1/hello HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
        Probe{"chunked_on_1_0",
              "POST /v1/echo HTTP/1.0\r\nHost: HOST\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"
              "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
              400},
        Probe{"hundreds_of_fields", many_fields(300), 431}, Probe{"one_field_too_many", many_fields(100), 431},
        Probe{"unknown_expectation", kPost + "Expect: tea\r\nContent-Length: 2\r\n\r\n{}", 417},
        Probe{"http_2_preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505}),
    [](const auto& probe) { return probe.param.name; });

INSTANTIATE_TEST_SUITE_P(
    BeastRejects, Probes,
    ::testing::Values(
        Probe{"length_and_chunked", kPost + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        Probe{"chunked_and_length", kPost + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
        Probe{"differing_lengths", kPost + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
        Probe{"signed_length", kPost + "Content-Length: +5\r\n\r\nhello", 400},
        Probe{"negative_length", kPost + "Content-Length: -5\r\n\r\nhello", 400},
        Probe{"overflowing_length", kPost + "Content-Length: 99999999999999999999\r\n\r\nhello", 400},
        Probe{"hexadecimal_length", kPost + "Content-Length: 0x5\r\n\r\nhello", 400},
        Probe{"empty_length", kPost + "Content-Length:\r\n\r\nhello", 400},
        Probe{"bare_lf", "GET /v1/hello HTTP/1.1\nHost: HOST\n\n", 400},
        Probe{"bare_lf_in_field", kGet + "X: a\nY: b\r\n\r\n", 400},
        Probe{"bare_cr_in_field", kGet + "X: a\rY: b\r\n\r\n", 400},
        Probe{"nul_in_field", kGet + std::string("X: a\0b\r\n\r\n", 10), 400},
        Probe{"nul_in_target", std::string("GET /v1/\0hello HTTP/1.1\r\nHost: HOST\r\n\r\n", 38), 400},
        Probe{"space_before_colon", kGet + "X : a\r\n\r\n", 400}, Probe{"empty_name", kGet + ": a\r\n\r\n", 400},
        Probe{"no_colon", kGet + "X\r\n\r\n", 400},
        Probe{"two_spaces", "GET  /v1/hello HTTP/1.1\r\nHost: HOST\r\n\r\n", 400},
        Probe{"no_version", "GET /v1/hello\r\nHost: HOST\r\n\r\n", 400},
        Probe{"lower_case_version", "GET /v1/hello http/1.1\r\nHost: HOST\r\n\r\n", 505},
        Probe{"tls_handshake", std::string("\x16\x03\x01\x02\x00\x01\x00", 7), 400},
        Probe{"bad_chunk_size", kPost + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n", 400},
        Probe{"negative_chunk_size", kPost + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", 400},
        Probe{"overflowing_chunk_size",
              kPost + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n", 400},
        Probe{"huge_chunk_size", kPost + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\nhello\r\n0\r\n\r\n",
              413},
        Probe{"chunk_with_bare_lf", kPost + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", 400},
        Probe{"chunk_without_end", kPost + "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n", 400},
        Probe{"header_over_8_KiB", kGet + "X: " + std::string(9000, 'a') + "\r\n\r\n", 431},
        Probe{"endless_header", kGet + "X: " + std::string(20000, 'a'), 431},
        Probe{"endless_chunk_extension", kPost + "Transfer-Encoding: chunked\r\n\r\n2;" + std::string(20000, 'a'), 400},
        Probe{"endless_trailer", kPost + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(20000, 'a'), 400}),
    [](const auto& probe) { return probe.param.name; });

// What looks odd and is right.
class Fine : public ::testing::TestWithParam<Probe> {};

TEST_P(Fine, IsAnsweredAndTheConnectionKept) {
  TestServer server;
  RawSocket socket = server.connect();
  socket.send(with_host(GetParam().bytes, server.host()) + server.get("/v1/trap"));
  auto answer = socket.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, GetParam().status) << answer->body;
  answer = socket.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  EXPECT_EQ(server.calls("/v1/trap"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Odd, Fine,
    ::testing::Values(
        Probe{"empty_line_before", "\r\n" + kGet + "\r\n", 200},
        Probe{"chunked_with_extension_and_trailer",
              kPost + "Transfer-Encoding: Chunked\r\n\r\n2;a=\"b\"\r\n{}\r\n0\r\nHost: evil.example\r\n\r\n", 200},
        Probe{"empty_chunked_body", kPost + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200},
        Probe{"spaces_around_value", "GET /v1/hello HTTP/1.1\r\nHost:   HOST  \r\n\r\n", 200},
        Probe{"absolute_form", "GET http://HOST/v1/hello HTTP/1.1\r\nHost: HOST\r\n\r\n", 200},
        Probe{"zero_length", kPost + "Content-Length: 0\r\n\r\n", 200},
        Probe{"http_1_0_kept", "GET /v1/hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200},
        Probe{"options_star", "OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n", 204},
        Probe{"hundred_fields", many_fields(99), 200},
        Probe{"unknown_method", "BREW /v1/hello HTTP/1.1\r\nHost: HOST\r\n\r\n", 501},
        Probe{"other_version_digit", "GET /v1/nothing HTTP/1.1\r\nHost: HOST\r\n\r\n", 404},
        Probe{"foreign_host", "GET /v1/hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        Probe{"foreign_origin", kGet + "Origin: http://evil.example\r\n\r\n", 403},
        Probe{"body_of_a_refused_request", "POST /v1/nothing HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello",
              404},
        Probe{"wrong_media_type",
              "POST /v1/echo HTTP/1.1\r\nHost: HOST\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415},
        Probe{"no_media_type", "POST /v1/echo HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\n{}", 415},
        Probe{"form",
              "POST /v1/echo HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/x-www-form-urlencoded\r\n"
              "Content-Length: 3\r\n\r\na=b",
              415},
        Probe{"media_type_with_charset",
              "POST /v1/echo HTTP/1.1\r\nHost: HOST\r\nContent-Type: Application/JSON; charset=utf-8\r\n"
              "Content-Length: 2\r\n\r\n{}",
              200},
        Probe{"encoded_body", kPost + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415},
        Probe{"body_on_get", kGet + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 400}),
    [](const auto& probe) { return probe.param.name; });

TEST(Probes, UnixSocketTakesAnyHostButNeedsOne) {
  millrace::http::Options options = TestServer::small_options();
  auto path = std::filesystem::temp_directory_path() / fmt::format("millrace-probe-{}.sock", ::getpid());
  options.unix_socket = path;
  TestServer server(options);
  RawSocket socket = RawSocket::unix_socket(path);
  socket.send("GET /v1/hello HTTP/1.1\r\nHost: any.thing\r\n\r\n");
  EXPECT_EQ(socket.read_answer()->status, 200);
  socket.send("GET /v1/hello HTTP/1.1\r\n\r\n");
  EXPECT_EQ(socket.read_answer()->status, 400);
}

}  // namespace
}  // namespace millrace::http::tests
