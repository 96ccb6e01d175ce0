#pragma once

#include <string_view>

namespace millrace {

/// What CMakeLists.txt says in project(VERSION), compiled in.
std::string_view version();
/// The git revision of the build, "-dirty" appended when the tree had changes, or "unknown".
std::string_view git_revision();
/// CMAKE_BUILD_TYPE and the sanitizers, if any.
std::string_view build_type();

}  // namespace millrace
