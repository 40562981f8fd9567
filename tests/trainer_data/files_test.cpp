#include "tests/support/catch.hpp"
#include "tests/trainer_data/file_size_limit.hpp"
#include "tests/trainer_data/temporary_folder.hpp"
#include "trainer/error.hpp"
#include "trainer/files/append_file.hpp"
#include "trainer/files/atomic_file.hpp"
#include "trainer/files/mapped_file.hpp"

using namespace ddprun::trainer;

namespace {

void write_text(const std::filesystem::path& path, const std::string& text) {
  write_file_atomically(path, {std::as_bytes(std::span(text))});
}

/// The message of the TrainerError that `action` throws; empty if none.
template <class Action>
std::string failure_of(Action action) {
  try {
    action();
  } catch (const TrainerError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a file is written completely, replaces the old one, and leaves no temporary file") {
  const TemporaryFolder folder;
  write_text(folder / "f", "old");
  const std::string a = "new";
  const std::string b = "er";
  write_file_atomically(folder / "f",
                        {std::as_bytes(std::span(a)), {}, std::as_bytes(std::span(b))});
  CHECK(content_of(folder / "f") == "newer");
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("a write that runs out of space leaves the old file unchanged, and no temporary file") {
  const TemporaryFolder folder;
  write_text(folder / "f", "old");
  const std::string large(100'000, 'x');
  std::string failure;
  {
    const FileSizeLimit limit(50'000);
    failure = failure_of([&] { write_text(folder / "f", large); });
  }
  CHECK_THAT(failure, ContainsSubstring("cannot write") && ContainsSubstring("File too large") &&
                          ContainsSubstring("unchanged"));
  CHECK(content_of(folder / "f") == "old");
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("a missing folder, or a folder in place of the file, is one sentence") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(write_text(folder / "absent/f", "x"), ContainsSubstring("No such file"));
  std::filesystem::create_directory(folder / "f");
  CHECK_THROWS_WITH(write_text(folder / "f", "x"), ContainsSubstring("Is a directory"));
  CHECK(entries_in(folder.path()) == 1);
  put(folder / "plain", "");
  CHECK_THROWS_WITH(make_folder(folder / "plain/sub"),
                    ContainsSubstring("cannot create the folder"));
}

TEST_CASE("temporary files of killed writers are removed, all other files stay") {
  const TemporaryFolder folder;
  put(folder / ".f.tmp-123", "torn");
  put(folder / ".f.tmp-999999", "torn");
  put(folder / ".g.tmp-123", "of another file");
  put(folder / "f", "whole");
  remove_abandoned_temporaries(folder / "f");
  CHECK(entries_in(folder.path()) == 2);
  CHECK(content_of(folder / "f") == "whole");
  remove_abandoned_temporaries(folder / "absent/f");
}

TEST_CASE("a temporary file of a killed writer with the same pid is overwritten") {
  const TemporaryFolder folder;
  put(folder / (".f.tmp-" + std::to_string(::getpid())), "torn and much longer than the new one");
  write_text(folder / "f", "new");
  CHECK(content_of(folder / "f") == "new");
}

TEST_CASE("records are appended completely, across reopening") {
  const TemporaryFolder folder;
  {
    AppendFile file(folder / "log");
    CHECK(file.empty());
    file.append("one\n");
  }
  AppendFile file(folder / "log");
  CHECK_FALSE(file.empty());
  file.append("two\n");
  CHECK(content_of(folder / "log") == "one\ntwo\n");
  CHECK_THROWS_WITH(AppendFile(folder / "absent/log"), ContainsSubstring("for appending"));
}

TEST_CASE("an append that runs out of space is an error") {
  const TemporaryFolder folder;
  AppendFile file(folder / "log");
  std::string failure;
  {
    const FileSizeLimit limit(10);
    failure = failure_of([&] { file.append("more than ten bytes\n"); });
  }
  CHECK(file.empty());  // nothing of a record that does not fit
  CHECK_THAT(failure,
             ContainsSubstring("cannot append to") && ContainsSubstring("free some space"));
}

TEST_CASE("a mapped file outlives its name, and its size limit is enforced") {
  const TemporaryFolder folder;
  put(folder / "f", "12345");
  const MappedFile file(folder / "f", 5);
  std::filesystem::remove(folder / "f");
  CHECK(std::to_integer<char>(file.bytes()[4]) == '5');
  put(folder / "f", "123456");
  CHECK_THROWS_WITH(MappedFile(folder / "f", 5), ContainsSubstring("6 bytes, the limit is 5"));
  put(folder / "f", "");
  CHECK(MappedFile(folder / "f", 5).bytes().empty());
}
