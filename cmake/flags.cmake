# One interface target carries the flags of our own code; third-party headers are SYSTEM and stay quiet.
add_library(millrace_flags INTERFACE)
target_compile_options(millrace_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wno-unused-parameter -fno-omit-frame-pointer -march=x86-64-v2)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(millrace_flags INTERFACE -Wthread-safety)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns of overlapping copies inside its own std::string (GCC bug 105651).
  target_compile_options(millrace_flags INTERFACE -Wno-restrict)
endif()
if(MILLRACE_WERROR)
  target_compile_options(millrace_flags INTERFACE -Werror)
endif()
if(MILLRACE_SANITIZE)
  target_compile_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's documentation: with -fsanitize= its flow analysis sees uses of unset variables that are none.
    target_compile_options(millrace_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(MILLRACE_SANITIZE STREQUAL "thread")
    # GCC 12's thread sanitizer does not understand the fences around Asio's handlers, and refuses to compile them. A
    # context of ours has one thread, and what reaches it from others goes through a mutex.
    target_compile_definitions(millrace_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
if(MILLRACE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MILLRACE_FUZZ needs clang, whose libFuzzer it is (preset clang)")
  endif()
  # Everything reports its coverage; only the fuzz targets link libFuzzer's main (tests/fuzz).
  target_compile_options(millrace_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(millrace_flags INTERFACE -fsanitize=address,undefined)
endif()
# Boost.Asio and Beast are compiled once (src/http/asio_impl.cc, beast_impl.cc); everywhere else they are declarations.
target_compile_definitions(millrace_flags INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_DISABLE_BOOST_COROUTINE)
target_include_directories(millrace_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(millrace_flags INTERFACE Threads::Threads)
