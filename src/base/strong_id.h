#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace millrace {

/// An integer that cannot be mixed up with another kind of integer. `Tag` is an empty struct that names the kind.
template <typename Tag, typename T>
struct StrongId {
  using Value = T;
  T value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(T v) : value(v) {}
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

}  // namespace millrace

template <typename Tag, typename T>
struct std::hash<millrace::StrongId<Tag, T>> {
  size_t operator()(millrace::StrongId<Tag, T> id) const noexcept { return std::hash<T>{}(id.value); }
};
