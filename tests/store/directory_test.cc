// The data directory: whose it is, which format it has, and what is said when it cannot be used.
#include <rocksdb/db.h>
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/store/store_fixture.h"

namespace millrace::store {
namespace {

class Directory : public StoreFixture {};

/// This thread's file accesses are those of somebody without rights, even when the tests run as root.
class WithoutRights {
 public:
  WithoutRights() : user_(::setfsuid(kNobody)), group_(::setfsgid(kNobody)) {}
  ~WithoutRights() {
    ::setfsuid(static_cast<uid_t>(user_));
    ::setfsgid(static_cast<gid_t>(group_));
  }

 private:
  static constexpr uid_t kNobody = 65534;
  int user_, group_;
};

TEST_F(Directory, IsCreatedWhenOnlyTheLastPartIsMissing) {
  auto store = must_open();
  EXPECT_TRUE(store->open_report().created);
  EXPECT_EQ(read_file(data() / "format"), "millrace-format 2\n");
  Error error = refusal_of(options(root() / "a" / "b"));
  EXPECT_EQ(error.code, "FILE_IO");
  EXPECT_NE(error.message.find((root() / "a").string() + " does not exist"), std::string::npos) << error.message;
}

TEST_F(Directory, ThatIsAFileIsSaidSo) {
  write_file(data(), "hello");
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "FILE_IO");
  EXPECT_EQ(error.kind, ErrorKind::kIo);
  EXPECT_NE(error.message.find(data().string() + " is a file"), std::string::npos) << error.message;
  EXPECT_EQ(read_file(data()), "hello");
}

TEST_F(Directory, WithSomebodyElsesFilesIsLeftAlone) {
  std::filesystem::create_directory(data());
  write_file(data() / "letters.txt", "dear");
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "FILE_IO");
  EXPECT_NE(error.message.find("letters.txt"), std::string::npos) << error.message;
  EXPECT_EQ(contents(data()).size(), 1u);
}

TEST_F(Directory, ThatMayNotBeWrittenIsSaidSo) {
  must_open().reset();
  std::filesystem::permissions(root(), std::filesystem::perms(0755));
  std::filesystem::permissions(data(), std::filesystem::perms(0555));
  std::filesystem::permissions(data() / "lock", std::filesystem::perms(0444));
  std::filesystem::permissions(data() / "format", std::filesystem::perms(0444));
  auto before = contents(data());
  {
    WithoutRights nobody;
    Error error = refusal_of(options());
    EXPECT_EQ(error.code, "FILE_IO");
    EXPECT_NE(error.message.find(data().string()), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("Permission denied"), std::string::npos) << error.message;
    Error fresh = refusal_of(options(root() / "new"));
    EXPECT_EQ(fresh.code, "FILE_IO");
    EXPECT_NE(fresh.message.find("Permission denied"), std::string::npos) << fresh.message;
  }
  EXPECT_EQ(contents(data()), before);
  std::filesystem::permissions(data(), std::filesystem::perms(0755));
}

TEST_F(Directory, OfANewerFormatIsNotTouched) {
  {
    auto store = must_open();
    fill(*store, 0, 10);
  }
  write_file(data() / "format", "millrace-format 3\n");
  auto before = contents(data());
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "FORMAT_TOO_NEW");
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_NE(error.message.find("format 3"), std::string::npos) << error.message;
  EXPECT_EQ(contents(data()), before);
  Options accepting = options();
  accepting.accept_loss = true;
  EXPECT_EQ(refusal_of(accepting).code, "FORMAT_TOO_NEW") << "a newer format is not damage";
}

TEST_F(Directory, OfAnOlderFormatHasThisOneAfterwards) {
  {
    auto store = must_open();
    fill(*store, 0, 10);
  }
  write_file(data() / "format", "millrace-format 1\n");
  expect_exactly(*must_open(), 10);
  EXPECT_EQ(read_file(data() / "format"), "millrace-format 2\n");
}

TEST_F(Directory, WithAnUnreadableFormatIsDamaged) {
  must_open().reset();
  for (const char* content : {"", "millrace-format", "millrace-format \n", "millrace-format 0\n", "millrace-format x\n",
                              "millrace-format 1", "millrace-format 99999999999\n", "something else\n"}) {
    write_file(data() / "format", content);
    EXPECT_EQ(refusal_of(options()).code, "STORE_DAMAGED") << content;
  }
}

TEST_F(Directory, WithATableOfANewerVersionIsNotTouched) {
  {
    auto store = must_open();
    fill(*store, 0, 10);
  }
  {
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, database().string(), &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> tables;
    for (const std::string& name : names) tables.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, database().string(), tables, &handles, &raw).ok());
    std::unique_ptr<rocksdb::DB> db(raw);
    rocksdb::ColumnFamilyHandle* future = nullptr;
    ASSERT_TRUE(db->CreateColumnFamily({}, "dreams", &future).ok());
    handles.push_back(future);
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }
  auto before = contents(database());
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "FORMAT_TOO_NEW");
  EXPECT_NE(error.message.find("'dreams'"), std::string::npos) << error.message;
  EXPECT_EQ(contents(database()), before);
}

TEST_F(Directory, OpenInThisProcessIsInUse) {
  auto store = must_open();
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "STORE_IN_USE");
  EXPECT_EQ(error.kind, ErrorKind::kUnavailable);
  store.reset();
  EXPECT_NE(must_open(), nullptr);
}

TEST_F(Directory, HeldByAnotherProcessNamesIt) {
  std::filesystem::create_directory(data());
  int held[2], done[2];
  ASSERT_EQ(::pipe(held), 0);
  ASSERT_EQ(::pipe(done), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(done[1]);
    auto lock = DirectoryLock::acquire(data());
    char byte = lock ? 'y' : 'n';
    [[maybe_unused]] auto told = ::write(held[1], &byte, 1);
    [[maybe_unused]] auto end = ::read(done[0], &byte, 1);  // Until the parent has looked, or is gone.
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(held[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  Error error = refusal_of(options());
  EXPECT_EQ(error.code, "STORE_IN_USE");
  EXPECT_NE(error.message.find("process " + std::to_string(child)), std::string::npos) << error.message;
  for (int fd : {done[0], done[1], held[0], held[1]}) ::close(fd);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_NE(must_open(), nullptr) << "a lock ends with its process";
}

}  // namespace
}  // namespace millrace::store
