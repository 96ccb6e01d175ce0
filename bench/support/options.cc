#include "bench/support/options.h"

#include <CLI/CLI.hpp>
#include <limits>

namespace millrace::bench {
namespace {

template <typename Number>
void add_number(CLI::App& app, const std::string& name, Number& value, const std::string& help, Number least) {
  app.add_option("--" + name, value, help)
      ->capture_default_str()
      ->check(CLI::Range(least, std::numeric_limits<Number>::max()));
}

}  // namespace

struct Options::Parser {
  CLI::App app;
};

Options::Options(std::string program) : parser_(std::make_unique<Parser>()) {
  parser_->app.name(std::move(program));
}
Options::~Options() = default;

void Options::number(const std::string& name, int64_t& value, const std::string& help, int64_t least) {
  add_number(parser_->app, name, value, help, least);
}
void Options::number(const std::string& name, int& value, const std::string& help, int least) {
  add_number(parser_->app, name, value, help, least);
}
void Options::number(const std::string& name, double& value, const std::string& help, double least) {
  add_number(parser_->app, name, value, help, least);
}

void Options::text(const std::string& name, std::string& value, const std::string& help, bool required) {
  parser_->app.add_option("--" + name, value, help)->capture_default_str()->required(required);
}

void Options::command(std::vector<std::string>& words, const std::string& help) {
  parser_->app.add_option("command", words, help);
}

int Options::run(int argc, char** argv, const std::function<int()>& bench) {
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parser_->app.exit(error) == 0 ? 0 : 2;
  }
  return bench();
}

}  // namespace millrace::bench
