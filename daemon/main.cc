#include "daemon/run.h"

int main(int argc, char** argv) {
  return millrace::daemon::run_daemon(argc, argv);
}
