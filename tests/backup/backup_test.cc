// Backups as directories: made, listed, checked, restored; whatever is changed in one is noticed. The data is made up:
// nothing here knows what it means.
#include "backup/backup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "backup/files.h"
#include "tests/support/temp_dir.h"

namespace millrace::backup {
namespace {

namespace fs = std::filesystem;

class Backup : public ::testing::Test {
 protected:
  static void write(const fs::path& path, std::string_view content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return (std::ostringstream() << in.rdbuf()).str();
  }
  Request request(std::string name) {
    Request request;
    request.directory = root() / "backups";
    request.info = {std::move(name), "node-1", "2026-01-01T00:00:00.000Z", "1.0", 0, 0};
    request.config = "[node]\nname = node-1\n";
    request.copy_data = [](const fs::path& to) -> Status {
      write(to / "format", "millrace-format 1\n");
      write(to / "db/000001.sst", std::string(3 << 20, 's'));
      write(to / "db/CURRENT", "MANIFEST-000002\n");
      write(to / "empty", "");
      return {};
    };
    return request;
  }
  static std::string code_of(const Result<Info>& result) { return std::string(result ? "" : result.error().code); }
  fs::path root() const { return dir_.path(); }
  fs::path made() const { return root() / "backups" / "one"; }

  tests::TempDir dir_;
};

TEST_F(Backup, IsRestoredWholeElsewhere) {
  auto info = create(request("one"), {});
  ASSERT_TRUE(info) << to_string(info.error());
  EXPECT_EQ(info->files, 5u);
  uint64_t seen = 0;
  auto restored = restore(made(), root() / "new", [&](uint64_t bytes) { return seen += bytes, true; });
  ASSERT_TRUE(restored) << to_string(restored.error());
  EXPECT_GE(seen, info->bytes);
  EXPECT_EQ(restored->node, "node-1");
  for (const char* file : {"format", "db/000001.sst", "db/CURRENT", "empty"})
    EXPECT_EQ(read(root() / "new" / file), read(made() / "data" / file)) << file;
  EXPECT_EQ(read(root() / "new/config-node.properties.restored"), "[node]\nname = node-1\n");
  EXPECT_TRUE(verify(made(), {})) << "only read";
  fs::create_directory(root() / "there");
  EXPECT_TRUE(restore(made(), root() / "there/", {})) << "an empty directory will do";
  EXPECT_EQ(read(root() / "there/db/CURRENT"), "MANIFEST-000002\n");
}

TEST_F(Backup, IsNeverRestoredOverAnything) {
  ASSERT_TRUE(create(request("one"), {}));
  write(root() / "data/precious", "x");
  EXPECT_EQ(code_of(restore(made(), root() / "data", {})), "DIRECTORY_NOT_EMPTY");
  EXPECT_EQ(code_of(restore(made(), root() / "data/precious", {})), "DIRECTORY_NOT_EMPTY");
  EXPECT_EQ(code_of(restore(made(), made() / "data", {})), "DIRECTORY_NOT_EMPTY") << "not in place";
  EXPECT_EQ(read(root() / "data/precious"), "x");
}

TEST_F(Backup, NamesAreChecked) {
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "a b", "x.incomplete", "\xc3\xa9"})
    EXPECT_EQ(code_of(create(request(name), {})), "INVALID_BACKUP_NAME") << name;
  EXPECT_EQ(code_of(create(request(std::string(65, 'a')), {})), "INVALID_BACKUP_NAME");
  ASSERT_TRUE(create(request("one"), {}));
  EXPECT_EQ(code_of(create(request("one"), {})), "BACKUP_EXISTS");
}

TEST_F(Backup, ListsCompleteOnesAndRemoves) {
  EXPECT_TRUE(list(root() / "backups")->empty());
  ASSERT_TRUE(create(request("two"), {}));
  ASSERT_TRUE(create(request("one"), {}));
  write(root() / "backups/three.incomplete/data/format", "x");
  write(root() / "backups/three.incomplete/unfinished", "");
  write(root() / "backups/photos.incomplete/summer", "not a backup's");
  write(root() / "backups/notes.txt", "x");
  fs::copy(made(), root() / "backups/renamed", fs::copy_options::recursive);
  auto found = list(root() / "backups");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].name, "one");
  EXPECT_EQ((*found)[1].name, "two");
  ASSERT_TRUE(backup::remove(made()));
  EXPECT_FALSE(fs::exists(made()));
  EXPECT_EQ(backup::remove(made()).error().code, "UNKNOWN_BACKUP");
  EXPECT_EQ(backup::remove(root() / "backups").error().code, "UNKNOWN_BACKUP") << "not just any directory";
  EXPECT_EQ(list(root() / "backups")->size(), 1u);
  // What nobody names is removed as well.
  ASSERT_TRUE(clear(root() / "backups"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root() / "backups"), {}), 4) << "two, renamed, photos, notes.txt";
  EXPECT_EQ(read(root() / "backups/photos.incomplete/summer"), "not a backup's");
  EXPECT_EQ(code_of(create(request("photos"), {})), "BACKUP_EXISTS");
  EXPECT_TRUE(clear(root() / "no such directory"));
}

TEST_F(Backup, OthersLeaveTheOneAloneThatIsBeingMade) {
  ASSERT_TRUE(create(request("old"), {}));
  bool tried = false;
  auto info = create(request("one"), [&](uint64_t) {
    if (std::exchange(tried, true)) return true;
    // As another node would that keeps its backups here as well.
    EXPECT_TRUE(backup::remove(root() / "backups/old"));
    EXPECT_TRUE(clear(root() / "backups"));
    EXPECT_EQ(code_of(create(request("two"), {})), "BACKUP_RUNNING");
    return true;
  });
  ASSERT_TRUE(info) << to_string(info.error());
  EXPECT_TRUE(verify(made(), {}));
  EXPECT_TRUE(tried);
  ASSERT_TRUE(clear(root() / "backups"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root() / "backups"), {}), 1);
}

TEST_F(Backup, OneThatLostFilesWhileItWasMadeIsNoBackup) {
  bool removed = false;
  auto info = create(request("one"), [&](uint64_t) {
    if (!std::exchange(removed, true)) fs::remove(root() / "backups/one.incomplete/config-node.properties");
    return true;
  });
  EXPECT_FALSE(info);
  EXPECT_TRUE(list(root() / "backups")->empty());
}

TEST_F(Backup, OneOnAnotherFileSystemIsCopiedStepByStep) {
  const fs::path memory = fs::path("/dev/shm") / root().filename();
  struct stat here {
  }, there{};
  std::error_code error;
  fs::create_directory(memory, error);
  const auto gone = std::shared_ptr<void>(nullptr, [&](void*) { fs::remove_all(memory, error); });
  if (::stat(memory.c_str(), &there) != 0 || ::stat(root().c_str(), &here) != 0 || here.st_dev == there.st_dev)
    GTEST_SKIP() << "/dev/shm is no other file system";
  Request request = this->request("one");
  request.staging = memory / "staging";
  write(request.staging / "old", "what a kill left");
  EXPECT_EQ(code_of(create(request, [](uint64_t) { return false; })), "STOPPING");
  EXPECT_TRUE(fs::is_empty(memory));
  uint64_t seen = 0;
  auto info = create(request, [&](uint64_t bytes) { return seen += bytes, true; });
  ASSERT_TRUE(info) << to_string(info.error());
  EXPECT_EQ(info->files, 5u);
  EXPECT_EQ(seen, info->bytes);
  EXPECT_TRUE(fs::is_empty(memory));
  EXPECT_TRUE(verify(made(), {}));
  EXPECT_FALSE(fs::exists(made() / "data/old"));
}

TEST_F(Backup, AFailedOrInterruptedOneLeavesNothing) {
  Request failing = request("one");
  failing.copy_data = [](const fs::path& to) -> Status {
    write(to / "half", "x");
    return fail(ErrorKind::kIo, "FILE_IO", "injected");
  };
  EXPECT_EQ(code_of(create(failing, {})), "FILE_IO");
  EXPECT_EQ(code_of(create(request("one"), [](uint64_t) { return false; })), "STOPPING");
  EXPECT_TRUE(fs::is_empty(root() / "backups"));
  // What a kill left is cleared away.
  write(root() / "backups/one.incomplete/data/old", "x");
  write(root() / "backups/one.incomplete/unfinished", "");
  write(root() / "backups/another.incomplete/unfinished", "");
  write(root() / "backups/another.incomplete/data/old", "x");
  ASSERT_TRUE(create(request("one"), {}));
  EXPECT_FALSE(fs::exists(made() / "data/old"));
  EXPECT_FALSE(fs::exists(root() / "backups/another.incomplete"));
  EXPECT_EQ(code_of(restore(made(), root() / "new", [](uint64_t) { return false; })), "STOPPING");
  EXPECT_FALSE(fs::exists(root() / "new"));
  EXPECT_FALSE(fs::exists(root() / "new.incomplete"));
}

/// Each byte of the small files, and some of the large one.
TEST_F(Backup, EveryChangeIsNoticed) {
  ASSERT_TRUE(create(request("one"), {}));
  auto files = files_of(made());
  ASSERT_TRUE(files);
  for (const std::string& file : *files) {
    const std::string content = read(made() / file);
    const size_t step = std::max<size_t>(content.size() / 400, 1);
    for (size_t at = 0; at<content.size(); at += content.size()>(1 << 20) ? content.size() / 3 : step) {
      std::string flipped = content;
      flipped[at] ^= 1;
      write(made() / file, flipped);
      auto checked = verify(made(), {});
      ASSERT_FALSE(checked) << file << " at " << at;
      ASSERT_EQ(checked.error().code, "BACKUP_DAMAGED") << file << " at " << at << to_string(checked.error());
    }
    if (!content.empty()) {
      write(made() / file, content.substr(0, content.size() - 1));
      EXPECT_EQ(code_of(verify(made(), {})), "BACKUP_DAMAGED") << file;
    }
    fs::remove(made() / file);
    EXPECT_NE(code_of(verify(made(), {})), "") << file << " is missing";
    EXPECT_NE(code_of(restore(made(), root() / "new", {})), "") << file << " is missing";
    EXPECT_FALSE(fs::exists(root() / "new"));
    write(made() / file, content);
    ASSERT_TRUE(verify(made(), {})) << file;
  }
  write(made() / "data/extra", "x");
  EXPECT_EQ(code_of(verify(made(), {})), "BACKUP_DAMAGED");
  fs::remove(made() / "data/extra");
  fs::create_symlink("/etc/passwd", made() / "data/link");
  EXPECT_EQ(code_of(verify(made(), {})), "BACKUP_DAMAGED");
}

TEST_F(Backup, PathsInTheListStayInside) {
  const std::string digest(64, 'a');
  for (const char* path : {"../x", "/etc/passwd", "a/../../x", "", "./x"})
    EXPECT_FALSE(parse_digests(digest + "  " + path + "\n")) << path;
  for (const std::string& text : {digest + "  x", digest + " x\n", digest + "\n", std::string("short  x\n"),
                                  std::string(64, 'G') + "  x\n", digest + "  x\n" + digest + "  x\n"})
    EXPECT_FALSE(parse_digests(text)) << text;
}

TEST_F(Backup, OtherToolsCanCheckIt) {
  ASSERT_TRUE(create(request("one"), {}));
  EXPECT_EQ(std::system(("cd '" + made().string() + "' && sha256sum --quiet --strict -c SHA256SUMS").c_str()), 0);
}

}  // namespace
}  // namespace millrace::backup
