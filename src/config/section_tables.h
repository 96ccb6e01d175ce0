#pragma once

#include "config/key.h"

namespace millrace::config {

// One table a section, each in <section>_config.cc. Only key.cc calls these.
Section node_section();
Section storage_section();
Section bus_section();
Section worker_section();
Section http_section();

}  // namespace millrace::config
