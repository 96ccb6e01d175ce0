// millraced with two processors, for the crash tests: it counts topic `t` into `counts`, and passes `delayed` on to
// `fired`.
#include "daemon/run.h"
#include "tests/support/worker/counter.h"
#include "tests/support/worker/delayer.h"

int main(int argc, char** argv) {
  using namespace millrace;
  return daemon::run_daemon(
      argc, argv,
      {std::make_shared<tests::Counter>("t", "counts"), std::make_shared<tests::Delayer>("delayed", "fired")});
}
