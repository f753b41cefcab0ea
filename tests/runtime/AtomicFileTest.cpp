// Files that appear whole or not at all, in both ways of making them: what is in the folder at every moment, also when
// the process is killed.
#include "runtime/AtomicFile.h"

#include "tests/runtime/TinyPlan.h"

#include <algorithm>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc::test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

using Create = Result<AtomicFile> (*)(const std::string &);

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Status write(AtomicFile &file, const std::string &text) { return file.append(std::as_bytes(std::span(text))); }

bool knowsNamelessFiles(const std::string &folder) {
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR, 0600);
  return fd >= 0 && ::close(fd) == 0;
}

class AtomicFiles : public ::testing::TestWithParam<Create> {
protected:
  std::string path(const char *name) const { return folder.path(name); }
  std::string root() const { return fs::path(path("x")).parent_path().string(); }
  TestFolder folder;
};

TEST_P(AtomicFiles, AppearsWhole) {
  auto file = GetParam()(path("x"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(write(*file, "whole"));
  EXPECT_FALSE(fs::exists(path("x")));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(readFile(path("x")), "whole");
  EXPECT_THAT(namesIn(root()), ElementsAre("x"));
}

TEST_P(AtomicFiles, ReplacesOnlyWhenCommitted) {
  folder.write("x", "old");
  {
    auto dropped = GetParam()(path("x"));
    ASSERT_TRUE(dropped);
    ASSERT_TRUE(write(*dropped, "new"));
  }
  EXPECT_EQ(readFile(path("x")), "old");
  auto file = GetParam()(path("x"));
  ASSERT_TRUE(file);
  AtomicFile moved = std::move(*file);
  ASSERT_TRUE(write(moved, "new"));
  EXPECT_EQ(readFile(path("x")), "old");
  ASSERT_TRUE(moved.commit());
  EXPECT_EQ(readFile(path("x")), "new");
  EXPECT_THAT(namesIn(root()), ElementsAre("x"));
}

TEST_P(AtomicFiles, HasTheModeOfAnyNewFile) {
  mode_t mask = ::umask(027);
  auto file = GetParam()(path("x"));
  ::umask(mask);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->commit());
  struct stat info;
  ASSERT_EQ(::stat(path("x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_P(AtomicFiles, TakesTheLongestName) {
  std::string longest = path("x") + std::string(NAME_MAX - 1, 'n');
  for (const char *text : {"one", "two"}) { // the second replaces the first
    auto file = GetParam()(longest);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(write(*file, text));
    Status done = file->commit();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(readFile(longest), text);
  }
  EXPECT_EQ(namesIn(root()).size(), 1u);
  EXPECT_EQ(GetParam()(longest + "n").error().message, longest + "n: cannot create: File name too long");
}

TEST_P(AtomicFiles, RefusesAtOnce) {
  folder.write("file", "");
  EXPECT_EQ(GetParam()(path("no/x")).error().message, path("no/x: cannot create: No such file or directory"));
  EXPECT_EQ(GetParam()(path("file/x")).error().message, path("file/x: cannot create: Not a directory"));
  EXPECT_EQ(GetParam()(root()).error().message, root() + ": cannot write: it exists and is not a regular file");
  EXPECT_THAT(namesIn(root()), ElementsAre("file"));
}

TEST_P(AtomicFiles, ReplacesALinkAndNotWhatItNames) {
  folder.write("far", "far");
  fs::create_symlink("far", path("near"));
  fs::create_symlink("nowhere", path("broken"));
  for (const char *name : {"near", "broken"}) {
    auto file = GetParam()(path(name));
    ASSERT_TRUE(file);
    ASSERT_TRUE(write(*file, "near"));
    ASSERT_TRUE(file->commit());
    EXPECT_FALSE(fs::is_symlink(path(name)));
    EXPECT_EQ(readFile(path(name)), "near");
  }
  EXPECT_EQ(readFile(path("far")), "far");
  EXPECT_THAT(namesIn(root()), ElementsAre("broken", "far", "near"));
}

TEST_P(AtomicFiles, SaysWhyACommitFailed) {
  auto file = GetParam()(path("x"));
  ASSERT_TRUE(file);
  fs::create_directory(path("x"));
  EXPECT_EQ(file->commit().error().message, path("x: cannot rename into place: Is a directory"));
}

TEST_P(AtomicFiles, RemovesWhatAKilledProcessLeft) {
  std::string longest = path("x") + std::string(NAME_MAX - 1, 'n');
  for (const std::string &name : {path("x"), path("x"), longest}) {
    pid_t child = ::fork();
    if (child == 0) {
      auto left = AtomicFile::createNamed(name);
      if (left && write(*left, "half"))
        ::raise(SIGKILL);
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  ASSERT_EQ(namesIn(root()).size(), 2u) << "one of each name: the second process removed what the first left";
  for (const std::string &name : {path("x"), longest}) {
    auto file = GetParam()(name);
    ASSERT_TRUE(file && file->commit());
  }
  EXPECT_THAT(namesIn(root()), ElementsAre("x", fs::path(longest).filename().string()));
}

TEST_P(AtomicFiles, LeavesWhatOthersAreWriting) {
  auto first = AtomicFile::createNamed(path("x")); // its temporary name is seen in the folder
  ASSERT_TRUE(first);
  fs::create_symlink("nowhere", path("x.unfinished.1"));
  fs::create_directory(path("x.unfinished.2"));
  auto second = GetParam()(path("x"));
  ASSERT_TRUE(second);
  ASSERT_TRUE(write(*first, "first") && write(*second, "second"));
  ASSERT_TRUE(second->commit());
  EXPECT_EQ(readFile(path("x")), "second");
  ASSERT_TRUE(first->commit());
  EXPECT_EQ(readFile(path("x")), "first");
  EXPECT_THAT(namesIn(root()), ElementsAre("x", "x.unfinished.1", "x.unfinished.2"));
}

INSTANTIATE_TEST_SUITE_P(Both, AtomicFiles, ::testing::Values(AtomicFile::create, AtomicFile::createNamed),
                         [](const auto &info) { return info.index == 0 ? "nameless" : "named"; });

TEST(AtomicFile, LeavesNothingOfAKilledProcess) {
  TestFolder folder;
  std::string root = fs::path(folder.path("x")).parent_path().string();
  folder.write("old", "old");
  pid_t child = ::fork();
  if (child == 0) {
    auto first = AtomicFile::create(folder.path("x"));
    auto second = AtomicFile::create(folder.path("old"));
    if (first && second && write(*first, "half") && write(*second, "half"))
      ::raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  // Two temporary files where the file system of the tests knows no nameless ones.
  EXPECT_EQ(namesIn(root).size(), knowsNamelessFiles(root) ? 1u : 3u);
  EXPECT_EQ(readFile(folder.path("old")), "old");
}

} // namespace
} // namespace llmc::test
