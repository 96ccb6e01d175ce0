#include "tests/crash/history.h"

#include <set>

namespace millrace::tests {
namespace {

std::string text_of(Place place) {
  return std::to_string(place.first) + ":" + std::to_string(place.second);
}

}  // namespace

void History::see(const std::string& id, Place place, std::string_view how) {
  auto [known, is_new] = seen_.emplace(place, id);
  if (!is_new && known->second != id)
    faults_.push_back(text_of(place) + " was " + known->second + " and is " + std::string(how) + " as " + id);
}

void History::acknowledged(const std::string& id, Place place) {
  std::lock_guard lock(mutex_);
  ++acknowledged_;
  see(id, place, "acknowledged");
}

void History::read(const std::string& id, Place place) {
  std::lock_guard lock(mutex_);
  ++read_;
  see(id, place, "read");
}

void History::fault(std::string what) {
  std::lock_guard lock(mutex_);
  faults_.push_back(std::move(what));
}

void History::check_final(const std::map<Place, std::string>& log, const std::vector<std::string>& sent) {
  std::lock_guard lock(mutex_);
  for (const auto& [place, id] : seen_) {
    auto found = log.find(place);
    if (found == log.end())
      faults_.push_back(id + " was seen at " + text_of(place) + " and is lost");
    else if (found->second != id)
      faults_.push_back(text_of(place) + " was " + id + " and is " + found->second);
  }
  std::set<std::string> ids;
  for (const auto& [place, id] : log)
    if (!ids.insert(id).second) faults_.push_back(id + " is there twice, once at " + text_of(place));
  for (const std::string& id : sent)
    if (!ids.contains(id)) faults_.push_back(id + " was sent until it was answered and is not there");
}

std::vector<std::string> History::faults() const {
  std::lock_guard lock(mutex_);
  return faults_;
}

size_t History::acknowledged_count() const {
  std::lock_guard lock(mutex_);
  return acknowledged_;
}

size_t History::read_count() const {
  std::lock_guard lock(mutex_);
  return read_;
}

}  // namespace millrace::tests
