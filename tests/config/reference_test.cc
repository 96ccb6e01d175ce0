#include "config/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "config/key.h"
#include "config/load.h"

// The table, the shipped file and the documentation say the same. When the table changes, run this test once with
// MILLRACE_UPDATE_REFERENCE=1 to rewrite the two files, and read the difference before committing it.
namespace millrace::config {
namespace {

const std::filesystem::path kSource = MILLRACE_SOURCE_DIR;
constexpr std::string_view kBegin = "<!-- keys: begin (rendered from src/config, do not edit) -->\n";
constexpr std::string_view kEnd = "\n<!-- keys: end -->\n";

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return (std::ostringstream() << in.rdbuf()).str();
}

bool update() {
  return std::getenv("MILLRACE_UPDATE_REFERENCE") != nullptr;
}

TEST(Reference, TheShippedFileIsTheTable) {
  std::filesystem::path file = kSource / "etc/config-node.properties";
  if (update()) std::ofstream(file) << render_properties_file();
  EXPECT_EQ(read(file), render_properties_file()) << "rewrite with MILLRACE_UPDATE_REFERENCE=1";
}

TEST(Reference, TheDocumentationHoldsTheTable) {
  std::filesystem::path file = kSource / "docs/config.md";
  std::string text = read(file);
  size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  begin += kBegin.size();
  if (update()) {
    text.replace(begin, end - begin, render_reference());
    std::ofstream(file) << text;
    end = text.find(kEnd);
  }
  EXPECT_EQ(text.substr(begin, end - begin), render_reference()) << "rewrite with MILLRACE_UPDATE_REFERENCE=1";
}

/// The shipped file with every key uncommented.
std::string uncommented() {
  std::istringstream in(read(kSource / "etc/config-node.properties"));
  std::string out, line;
  while (std::getline(in, line))
    out += (line.size() > 1 && line[0] == '#' && line[1] != ' ' ? line.substr(1) : line) + "\n";
  return out;
}

TEST(Reference, TheShippedFileIsValidAsItIsAndUncommented) {
  Environment environment;
  environment.home = "/home/miller";
  auto defaults = load_text(std::nullopt, "", {}, environment);
  auto as_is = load_text(read(kSource / "etc/config-node.properties"), "etc", {}, environment);
  ASSERT_TRUE(as_is) << to_string(as_is.error());
  EXPECT_TRUE(as_is->origins.empty());
  auto all = load_text(uncommented(), "etc", {}, environment);
  ASSERT_TRUE(all) << to_string(all.error());
  for (const Section& section : sections()) {
    for (const Key& key : section.keys) {
      EXPECT_TRUE(all->origins.contains(key.path())) << key.path() << " is not in the shipped file";
      EXPECT_EQ(key.write(all->config), key.write(defaults->config)) << key.path();
    }
  }
}

TEST(Reference, EveryKeyReadsBackItsDefaultAndIsDescribed) {
  std::set<std::string> seen;
  for (const Section& section : sections()) {
    EXPECT_TRUE(section.description.ends_with('.')) << section.name;
    for (const Key& key : section.keys) {
      EXPECT_TRUE(seen.insert(key.path()).second) << key.path() << " is declared twice";
      EXPECT_TRUE(key.description.ends_with('.')) << key.path();
      Config config;
      std::string value = key.write(config);
      EXPECT_FALSE(value.empty() && key.empty_means.empty()) << key.path();
      EXPECT_EQ(key.read(config, value), "") << key.path();
      EXPECT_EQ(key.write(config), value) << key.path();
      EXPECT_EQ(value.find('|'), std::string::npos) << key.path() << " would break the table of the documentation";
    }
  }
}

TEST(Reference, TheDefaultsAgreeWithEachOther) {
  Environment environment;
  environment.home = "/home/miller";
  auto loaded = load_text(std::nullopt, "", {}, environment);
  EXPECT_TRUE(loaded) << to_string(loaded.error());
}

}  // namespace
}  // namespace millrace::config
