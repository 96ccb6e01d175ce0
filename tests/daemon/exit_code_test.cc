#include "daemon/exit_code.h"

#include <gtest/gtest.h>

namespace millrace::daemon {
namespace {

ExitCode of(ErrorKind kind) {
  return exit_code_of(Error{kind, "X", ""});
}

TEST(ExitCode, TellsWhetherARestartCouldHelp) {
  EXPECT_EQ(of(ErrorKind::kIo), 74);
  EXPECT_EQ(of(ErrorKind::kCorruption), 74);
  EXPECT_EQ(of(ErrorKind::kUnknown), 74) << "an indeterminate write is settled by a restart";
  EXPECT_EQ(of(ErrorKind::kUnavailable), 75);
  EXPECT_EQ(of(ErrorKind::kUnsupported), 78) << "a newer format stays newer";
  EXPECT_EQ(of(ErrorKind::kInvalidArgument), 78);
  EXPECT_EQ(of(ErrorKind::kInternal), 70);
}

}  // namespace
}  // namespace millrace::daemon
