#pragma once

#include "config/bus_config.h"
#include "config/http_config.h"
#include "config/node_config.h"
#include "config/storage_config.h"
#include "config/worker_config.h"

namespace millrace::config {

/// What the daemon runs with: one plain struct a section. A default-constructed Config holds the defaults, which stand
/// nowhere else; load() (config/load.h) fills in what the file and the command line say. A value: copied freely.
struct Config {
  NodeConfig node;
  StorageConfig storage;
  BusConfig bus;
  WorkerConfig worker;
  HttpConfig http;
};

}  // namespace millrace::config
