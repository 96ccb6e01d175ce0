#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "config/fault.h"
#include "config/key.h"

namespace millrace::config {

/// Writes a section's table: one call a key, naming the field of the section's struct that it fills. Used only by the
/// <section>_config.cc files, which read as the reference of their section.
template <typename S>
class SectionBuilder {
 public:
  SectionBuilder(std::string name, S Config::*member, std::string description)
      : member_(member), section_{std::move(name), std::move(description), {}} {}

  Section build() && { return std::move(section_); }

  Key& boolean(const char* name, bool S::*field, const char* description) {
    return add(name, "true or false", "", field, parse_bool, format_bool, description);
  }

  template <typename T>
  Key& integer(const char* name, T S::*field, uint64_t low, uint64_t high, const char* description) {
    auto parse = [low, high](std::string_view text) -> Parsed<T> {
      return in_range(parse_integer(text), low, high, format_integer).map([](uint64_t v) { return static_cast<T>(v); });
    };
    return add(name, "integer", range_of(low, high, format_integer), field, parse, format_integer, description);
  }

  template <typename T>
  Key& power_of_two(const char* name, T S::*field, uint64_t low, uint64_t high, const char* description) {
    auto parse = [low, high](std::string_view text) -> Parsed<T> {
      auto value = in_range(parse_integer(text), low, high, format_integer);
      if (value && (*value & (*value - 1)) != 0) return Wrong(show(text) + " is no power of two, such as 4'096");
      return value.map([](uint64_t v) { return static_cast<T>(v); });
    };
    return add(name, "power of two", range_of(low, high, format_integer), field, parse, format_integer, description);
  }

  Key& size(const char* name, uint64_t S::*field, uint64_t low, uint64_t high, const char* description) {
    auto parse = [low, high](std::string_view text) { return in_range(parse_size(text), low, high, format_size); };
    return add(name, "size", range_of(low, high, format_size), field, parse, format_size, description);
  }

  Key& duration(const char* name, std::chrono::milliseconds S::*field, std::chrono::milliseconds low,
                std::chrono::milliseconds high, const char* description) {
    auto parse = [low, high](std::string_view text) {
      return in_range(parse_duration(text), low, high, format_duration);
    };
    return add(name, "duration", range_of(low, high, format_duration), field, parse, format_duration, description);
  }

  Key& text(const char* name, std::string S::*field, size_t max_bytes, const char* description) {
    auto parse = [max_bytes](std::string_view text) -> Parsed<std::string> {
      if (text.size() > max_bytes) return Wrong(fmt::format("{} is longer than {} bytes", show(text), max_bytes));
      return std::string(text);
    };
    return add(
        name, "text", fmt::format("at most {} bytes", max_bytes), field, parse, [](const std::string& v) { return v; },
        description);
  }

  /// Relative to the daemon's working directory; load() makes it absolute.
  Key& path(const char* name, std::filesystem::path S::*field, const char* description) {
    auto parse = [](std::string_view text) -> Parsed<std::filesystem::path> {
      if (text.starts_with('~')) return Wrong(show(text) + " begins with '~', which is not expanded here");
      return std::filesystem::path(text);
    };
    return add(
        name, "path", "", field, parse, [](const std::filesystem::path& v) { return v.string(); }, description);
  }

  template <typename E>
  Key& choice(const char* name, E S::*field, std::initializer_list<std::pair<const char*, E>> choices,
              const char* description) {
    std::vector<std::pair<const char*, E>> known(choices);
    std::string names;
    for (const auto& [text, value] : known) names += (names.empty() ? "" : ", ") + std::string(text);
    auto parse = [known, names](std::string_view text) -> Parsed<E> {
      std::vector<std::string_view> candidates;
      for (const auto& [choice, value] : known) {
        if (choice == text) return value;
        candidates.push_back(choice);
      }
      std::string_view near = nearest(text, candidates);
      std::string hint = near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
      return Wrong(fmt::format("{} is not one of {}{}", show(text), names, hint));
    };
    auto format = [known](E value) -> std::string {
      for (const auto& [text, choice] : known)
        if (choice == value) return text;
      return {};
    };
    return add(name, "one of " + names, "", field, parse, format, description);
  }

  /// `parse_item(text) -> Parsed<T>`; at most `max_items`.
  template <typename T, typename ParseItem, typename FormatItem>
  Key& list(const char* name, const char* type, std::vector<T> S::*field, size_t max_items, ParseItem parse_item,
            FormatItem format_item, const char* description) {
    auto parse = [max_items, parse_item](std::string_view text) -> Parsed<std::vector<T>> {
      auto items = split_list(text);
      if (!items) return Wrong(std::move(items.error()));
      if (items->size() > max_items)
        return Wrong(fmt::format("the list has {} items; at most {} may be given", items->size(), max_items));
      std::vector<T> values;
      for (std::string_view item : *items) {
        Parsed<T> value = parse_item(item);
        if (!value) return Wrong(std::move(value.error()));
        values.push_back(std::move(*value));
      }
      return values;
    };
    auto format = [format_item](const std::vector<T>& values) {
      std::string text;
      for (const T& value : values) text += (text.empty() ? "" : ", ") + std::string(format_item(value));
      return text;
    };
    return add(name, type, fmt::format("at most {}", max_items), field, parse, format, description);
  }

 private:
  template <typename T, typename Format>
  static Parsed<T> in_range(Parsed<T> value, T low, T high, Format format) {
    if (value && (*value < low || *value > high))
      return Wrong(fmt::format("{} is out of range; allowed are {}", format(*value), range_of(low, high, format)));
    return value;
  }
  template <typename T, typename Format>
  static std::string range_of(T low, T high, Format format) {
    return fmt::format("{} to {}", format(low), format(high));
  }

  template <typename T, typename Parse, typename Format>
  Key& add(const char* name, std::string type, std::string range, T S::*field, Parse parse, Format format,
           const char* description) {
    Key& key = section_.keys.emplace_back();
    key.section = section_.name;
    key.name = name;
    key.type = std::move(type);
    key.range = std::move(range);
    key.description = description;
    key.read = [member = member_, field, parse](Config& config, std::string_view text) -> std::string {
      Parsed<T> value = parse(text);
      if (!value) return std::move(value.error());
      config.*member.*field = std::move(*value);
      return {};
    };
    key.write = [member = member_, field, format](const Config& config) { return format(config.*member.*field); };
    return key;
  }

  S Config::*member_;
  Section section_;
};

}  // namespace millrace::config
