#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::http {

/// Header fields in the order they came. Names compare without case. All text lies in one string, so a request's
/// thirty fields cost two allocations; therefore a view that find() returned is void after add() or a move.
class Headers {
 public:
  void add(std::string_view name, std::string_view value);
  /// Replaces every field of that name by this one.
  void set(std::string_view name, std::string_view value);
  /// The first value of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  size_t count(std::string_view name) const;
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::string_view name(size_t index) const { return view(entries_[index].name_at, entries_[index].name_size); }
  std::string_view value(size_t index) const { return view(entries_[index].value_at, entries_[index].value_size); }
  /// Room for that much text and that many fields.
  void reserve(size_t bytes, size_t fields);
  void clear();

 private:
  struct Entry {
    uint32_t name_at, name_size, value_at, value_size;
  };
  std::string_view view(uint32_t at, uint32_t size) const { return std::string_view(text_).substr(at, size); }

  std::string text_;
  std::vector<Entry> entries_;
};

/// Equal without regard to ASCII case.
bool iequals(std::string_view a, std::string_view b);

}  // namespace millrace::http
