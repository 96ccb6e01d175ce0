#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace::bench {

/// The options of a bench's program, parsed in one way for all. Their names are without the dashes; what a variable
/// holds is the option's default.
class Options {
 public:
  /// `program` as the usage names it.
  explicit Options(std::string program);
  ~Options();

  /// A number, at least `least`.
  void number(const std::string& name, int64_t& value, const std::string& help, int64_t least = 1);
  void number(const std::string& name, int& value, const std::string& help, int least = 1);
  void number(const std::string& name, double& value, const std::string& help, double least);
  void text(const std::string& name, std::string& value, const std::string& help, bool required = false);
  /// What stands behind `--`, untouched: a command with options of its own.
  void command(std::vector<std::string>& words, const std::string& help);

  /// Parses the command line and runs `bench`; its answer is the exit code. 2, and the reason on standard error, when
  /// an option is unknown, missing or out of range.
  int run(int argc, char** argv, const std::function<int()>& bench);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace millrace::bench
