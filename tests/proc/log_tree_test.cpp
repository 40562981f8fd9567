#include "agent/output/log_tree.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <regex>

#include "agent/output/log_file.hpp"
#include "base/process_setup.hpp"
#include "tests/proc/support.hpp"

using ddprun::Clock;
using ddprun::DiskThread;
using ddprun::ErrorKind;
using ddprun::LocalRank;
using ddprun::LogTree;
using ddprun::LogTreeOptions;
using ddprun::RestartCount;
using ddprun::Round;
using ddprun::RunId;
using proc_test::contents;
using proc_test::kWaitMax;
using proc_test::run;
using proc_test::TempDir;
using proc_test::write_file;

namespace fs = std::filesystem;

namespace {

LogTreeOptions options(const std::string& dir, const std::string& run_id = "none") {
  LogTreeOptions of;
  of.dir = dir;
  of.run_id = RunId(run_id);
  return of;
}

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777U;
}

}  // namespace

TEST_CASE("the log directories have torchrun's layout") {
  const TempDir directory;
  auto tree = LogTree::open(options(directory / "logs/deep"));
  REQUIRE(tree.has_value());
  CHECK(fs::is_empty(directory / "logs/deep"));  // the run directory comes with the first start
  auto attempt = tree->attempt(RestartCount(0), Round(1), 2);
  REQUIRE(attempt.has_value());
  const std::regex layout(directory.path() + "/logs/deep/none_[a-z0-9_]{8}/attempt_0/1/error.json");
  CHECK(std::regex_match(attempt->error_file(LocalRank(1)), layout));
  CHECK(fs::is_directory(attempt->directory() + "/0"));
  CHECK(fs::is_directory(attempt->directory() + "/1"));
  CHECK_FALSE(fs::exists(attempt->directory() + "/2"));
  CHECK(attempt->stdout_log(LocalRank(0)) == attempt->directory() + "/0/stdout.log");
  CHECK(attempt->stderr_log(LocalRank(1)) == attempt->directory() + "/1/stderr.log");
  CHECK(attempt->filtered_stdout_log() == attempt->directory() + "/filtered_stdout.log");
  CHECK(attempt->filtered_stderr_log() == attempt->directory() + "/filtered_stderr.log");
}

TEST_CASE("directories under --log-dir have the modes that the umask allows, for collectors") {
  const TempDir directory;
  const mode_t before = ::umask(0027);
  auto tree = LogTree::open(options(directory / "logs"));
  auto attempt = tree->attempt(RestartCount(0), Round(1), 1);
  ::umask(before);
  REQUIRE(attempt.has_value());
  CHECK(mode_of(tree->run_directory()) == 0750);
  CHECK(mode_of(attempt->directory() + "/0") == 0750);
}

TEST_CASE("a --log-dir in which nothing can be made is a usage error too") {
  const TempDir directory;
  auto tree = LogTree::open(options(directory / "logs"));
  REQUIRE(tree.has_value());
  fs::remove(directory / "logs");
  const auto attempt = tree->attempt(RestartCount(0), Round(1), 1);
  CHECK(attempt.error().kind == ErrorKind::kUsage);
  CHECK_THAT(attempt.error().sentence, ContainsSubstring("(--log-dir)"));
}

TEST_CASE("a restart has its own directory in the same run directory") {
  const TempDir directory;
  auto tree = LogTree::open(options(directory.path()));
  auto first = tree->attempt(RestartCount(0), Round(1), 1);
  auto second = tree->attempt(RestartCount(1), Round(2), 1);
  CHECK(second->directory() == tree->run_directory() + "/attempt_1");
  CHECK(fs::path(first->directory()).parent_path() == fs::path(second->directory()).parent_path());
}

TEST_CASE("a later round with the same restart count wipes nothing") {
  const TempDir directory;
  auto tree = LogTree::open(options(directory.path()));
  auto first = tree->attempt(RestartCount(0), Round(1), 1);
  write_file(first->error_file(LocalRank(0)), "evidence");
  auto second = tree->attempt(RestartCount(0), Round(2), 1);
  auto third = tree->attempt(RestartCount(0), Round(2), 1);
  CHECK(contents(first->error_file(LocalRank(0))) == "evidence");
  CHECK(second->directory() == first->directory() + "_round_2");
  CHECK(third->directory() == first->directory() + "_round_2_2");
}

TEST_CASE("a relative --log-dir becomes absolute") {
  const TempDir directory;
  const auto before = fs::current_path();
  fs::current_path(directory.path());
  auto tree = LogTree::open(options("logs"));
  fs::current_path(before);
  CHECK(tree->base() == directory / "logs");
}

TEST_CASE("a --log-dir that ends in a slash or a dot has no double slash in what is shown") {
  const TempDir directory;
  for (const char* end : {"", "/", "//", "/.", "/./"}) {
    CHECK(LogTree::open(options((directory / "logs") + end))->base() == directory / "logs");
  }
  CHECK(LogTree::open(options("/"))->base() == "/");
}

TEST_CASE("a --log-dir with two dots behind a symbolic link is where that link leads") {
  const TempDir directory;
  fs::create_directories(directory / "real/below");
  fs::create_symlink(directory / "real/below", directory / "link");
  auto tree = LogTree::open(options(directory / "link/../logs"));
  REQUIRE(tree.has_value());
  CHECK(fs::is_directory(directory / "real/logs"));
  CHECK(tree->base() == fs::canonical(directory / "real/logs").string());
}

TEST_CASE("a --log-dir that is a file is refused as a usage error") {
  const TempDir directory;
  write_file(directory / "file", "");
  auto tree = LogTree::open(options(directory / "file"));
  REQUIRE_FALSE(tree.has_value());
  CHECK(tree.error().kind == ErrorKind::kUsage);
  CHECK_THAT(tree.error().sentence, ContainsSubstring(directory / "file"));
  CHECK(LogTree::open(options(directory / "file/below")).error().kind == ErrorKind::kUsage);
}

TEST_CASE("a log directory of /dev/null means no files and empty paths") {
  auto tree = LogTree::open(options("/dev/null"));
  REQUIRE(tree.has_value());
  CHECK_FALSE(tree->files());
  auto attempt = tree->attempt(RestartCount(0), Round(1), 2);
  CHECK_FALSE(attempt->files());
  CHECK(attempt->error_file(LocalRank(0)).empty());
  CHECK(attempt->filtered_stdout_log().empty());
}

TEST_CASE("a run id with slashes or of any length names one directory inside the base") {
  const TempDir directory;
  for (const std::string& run_id : {std::string("a/b/../c"), std::string(5000, 'x')}) {
    auto tree = LogTree::open(options(directory.path(), run_id));
    REQUIRE(tree->attempt(RestartCount(0), Round(1), 1).has_value());
    CHECK(fs::path(tree->run_directory()).parent_path() == fs::path(directory.path()));
  }
}

TEST_CASE("without --log-dir a private temporary directory is used and is removed at the end") {
  const TempDir tmpdir;
  auto wanted = options("");
  wanted.tmpdir = tmpdir.path();
  auto tree = LogTree::open(wanted);
  REQUIRE(tree.has_value());
  CHECK(std::regex_match(tree->base(), std::regex(tmpdir.path() + "/torchelastic_[a-z0-9_]{8}")));
  CHECK(mode_of(tree->base()) == 0700);
  auto attempt = tree->attempt(RestartCount(0), Round(1), 2);
  SECTION("after success all of it goes") {
    write_file(attempt->stdout_log(LocalRank(0)), "text");
    tree->discard();
    tree->finish();
    CHECK(fs::is_empty(tmpdir.path()));
  }
  SECTION("after a failure it stays when there is something to read") {
    write_file(attempt->error_file(LocalRank(1)), "{}");
    tree->discard_if_empty();
    tree->finish();
    CHECK(contents(attempt->error_file(LocalRank(1))) == "{}");
  }
  SECTION("after a failure it goes when there is nothing to read") {
    write_file(attempt->stdout_log(LocalRank(0)), "");
    tree->discard_if_empty();
    tree->finish();
    CHECK(fs::is_empty(tmpdir.path()));
  }
}

TEST_CASE("a tree that is opened later is opened by its first attempt, with the same errors") {
  const TempDir directory;
  auto tree = LogTree::open_later(options(directory / "logs"));
  CHECK_FALSE(fs::exists(directory / "logs"));
  auto attempt = tree.attempt(RestartCount(0), Round(1), 1);
  CHECK(fs::is_directory(attempt->directory() + "/0"));
  write_file(directory / "file", "text");
  auto wrong = LogTree::open_later(options(directory / "file"));
  CHECK(wrong.attempt(RestartCount(0), Round(1), 1).error().kind == ErrorKind::kUsage);
}

TEST_CASE("a report that the console did not take stays, also after success") {
  const TempDir tmpdir;
  auto wanted = options("");
  wanted.tmpdir = tmpdir.path();
  auto tree = LogTree::open(wanted);
  REQUIRE(tree->attempt(RestartCount(0), Round(1), 1).has_value());
  tree->discard();
  const auto kept = tree->keep_report("ddprun: the report\n");
  REQUIRE(kept.has_value());
  tree->finish();
  CHECK(*kept == tree->run_directory() + "/report.txt");
  CHECK(contents(*kept) == "ddprun: the report\n");
  CHECK_FALSE(LogTree::open(options("/dev/null"))->keep_report("text").has_value());
}

TEST_CASE("a report is kept under another name where a worker has taken the first") {
  const TempDir directory;
  auto tree = LogTree::open(options(directory / "logs"));
  REQUIRE(tree->attempt(RestartCount(0), Round(1), 1).has_value());
  fs::create_symlink(directory / "elsewhere", tree->run_directory() + "/report.txt");
  const auto kept = tree->keep_report("ddprun: the report\n");
  REQUIRE(kept.has_value());
  CHECK(std::regex_match(fs::path(*kept).filename().string(), std::regex("report_.{8}\\.txt")));
  CHECK(contents(*kept) == "ddprun: the report\n");
  CHECK_FALSE(fs::exists(directory / "elsewhere"));
}

TEST_CASE("renaming a log directory does not lead its files elsewhere") {
  boost::asio::io_context io;
  const TempDir directory;
  auto tree = LogTree::open(options(directory / "logs"));
  auto attempt = tree->attempt(RestartCount(0), Round(1), 2);
  fs::create_directories(directory / "trap/0");
  fs::rename(attempt->directory(), directory / "moved");
  fs::create_directory_symlink(directory / "trap", attempt->directory());
  REQUIRE(attempt->create(attempt->stdout_log(LocalRank(0)), DiskThread(io.get_executor()))
              .has_value());
  CHECK(fs::exists(directory / "moved/0/stdout.log"));
  CHECK(fs::is_empty(directory / "trap/0"));
  fs::remove(directory / "moved/1");
  fs::create_directory_symlink(directory / "trap/0", directory / "moved/1");
  CHECK_FALSE(attempt->create(attempt->stdout_log(LocalRank(1)), DiskThread(io.get_executor()))
                  .has_value());
  CHECK(fs::is_empty(directory / "trap/0"));
}

TEST_CASE("a log file is never written over something that is there") {
  boost::asio::io_context io;
  const TempDir directory;
  auto tree = LogTree::open(options(directory / "logs"));
  auto attempt = tree->attempt(RestartCount(0), Round(1), 1);
  write_file(directory / "precious", "precious");
  fs::create_symlink(directory / "precious", attempt->stdout_log(LocalRank(0)));
  CHECK_FALSE(attempt->create(attempt->stdout_log(LocalRank(0)), DiskThread(io.get_executor()))
                  .has_value());
  CHECK(contents(directory / "precious") == "precious");
}

TEST_CASE("for root a log directory of another user has a warning, such a TMPDIR is passed over") {
  if (::geteuid() != 0) {
    WARN("only root can give a directory away: not tested");
    return;
  }
  const TempDir directory;
  fs::create_directory(directory / "theirs");
  REQUIRE(::chown((directory / "theirs").c_str(), 65533, 65533) == 0);
  auto named = LogTree::open(options(directory / "theirs"));
  REQUIRE(named->attempt(RestartCount(0), Round(1), 1).has_value());
  CHECK(fs::path(named->run_directory()).parent_path() == directory / "theirs");
  CHECK_THAT(named->foreign_sentence(), ContainsSubstring("theirs belongs to user 65533"));
  CHECK(LogTree::open(options(directory / "own"))->foreign_sentence().empty());
  auto wanted = options("");
  wanted.tmpdir = directory / "theirs";
  auto tree = LogTree::open(wanted);
  CHECK(fs::path(tree->base()).parent_path() == "/tmp");
  CHECK(tree->foreign_sentence().empty());
  tree->discard();
  tree->finish();
}

TEST_CASE("a --log-dir is never removed") {
  const TempDir directory;
  auto tree = LogTree::open(options(directory / "logs"));
  auto attempt = tree->attempt(RestartCount(0), Round(1), 1);
  for (const auto ending : {&LogTree::discard, &LogTree::discard_if_empty}) {
    ((*tree).*ending)();
    tree->finish();
  }
  CHECK(fs::is_directory(attempt->directory()));
}

TEST_CASE("a TMPDIR that is not there is passed over") {
  auto wanted = options("");
  wanted.tmpdir = "/no/such/directory";
  auto tree = LogTree::open(wanted);
  REQUIRE(tree.has_value());
  CHECK(fs::path(tree->base()).parent_path() == "/tmp");
  tree->discard();
  tree->finish();
}

TEST_CASE("a log file on a full disk warns once and nothing else happens") {
  boost::asio::io_context io;
  DiskThread disk(io.get_executor());
  auto file = ddprun::LogFile::open("/dev/full", disk);
  REQUIRE(file.has_value());
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& sentence) { warnings.push_back(sentence); };
  for (const char* line : {"one\n", "two\n"}) {
    (*file)->append(line, warn);
    run(io, disk.idle(Clock::now() + kWaitMax));
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("/dev/full: No space left on device"));
}

TEST_CASE("a log file at the limit on file sizes warns once, and no process dies of SIGXFSZ") {
  const TempDir directory;
  ddprun::prepare_process();
  boost::asio::io_context io;
  DiskThread disk(io.get_executor());
  auto file = ddprun::LogFile::open(directory / "stdout.log", disk);
  REQUIRE(file.has_value());
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& sentence) { warnings.push_back(sentence); };
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small = {100, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  for (const std::string& text : {std::string(200, 'x'), std::string("two\n")}) {
    (*file)->append(text, warn);
    run(io, disk.idle(Clock::now() + kWaitMax));
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("File too large"));
}

TEST_CASE("a log file that cannot be made is a sentence with its path") {
  boost::asio::io_context io;
  const DiskThread disk(io.get_executor());
  const auto error = ddprun::LogFile::open("/no/such/directory/stdout.log", disk).error();
  CHECK_THAT(error.sentence, ContainsSubstring("/no/such/directory/stdout.log"));
  CHECK(error.kind == ErrorKind::kSystem);
}
