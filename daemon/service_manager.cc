#include "daemon/service_manager.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <ctime>

namespace millrace::daemon {
namespace {

/// Assignments are separated by line breaks, so a value must not hold one.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void notify(const std::string& assignments) {
  ::sd_notify(0, assignments.c_str());
}

}  // namespace

void ServiceManager::ready(const std::string& status) const {
  notify("READY=1\nSTATUS=" + one_line(status));
}

void ServiceManager::reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  // Type=notify-reload (systemd 253) matches the reload it asked for by this time.
  notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reloading",
                     static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000));
}

void ServiceManager::stopping() const {
  notify("STOPPING=1\nSTATUS=stopping");
}

void ServiceManager::status(const std::string& text) const {
  notify("STATUS=" + one_line(text));
}

void ServiceManager::watchdog() const {
  notify("WATCHDOG=1");
}

std::optional<std::chrono::milliseconds> ServiceManager::watchdog_period() {
  uint64_t usec = 0;
  if (::sd_watchdog_enabled(0, &usec) <= 0) return std::nullopt;
  return std::chrono::milliseconds(std::max<uint64_t>(usec / 1000, 1));
}

}  // namespace millrace::daemon
