#pragma once

namespace millrace {

/// Fills descriptors 0 to 2 where the caller of this process has closed them, so that no file opened later gets their
/// numbers and is then read or written as standard input or output (a log line in a database, for one). What is filled
/// cannot be read or written: that is an error to whoever tries. First thing in main().
void fill_standard_files();

}  // namespace millrace
