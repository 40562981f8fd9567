#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/catch.hpp"
#include "worker_api/worker.hpp"

namespace {

namespace fs = std::filesystem;

std::string decoded(const std::string& bytes) {
  const auto record = boost::json::parse(ddprun::error_record(bytes, "", 0));
  return std::string(record.at("message").at("message").as_string());
}

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A temporary directory whose error.json is the launcher's error file.
class RecordDirectory {
 public:
  RecordDirectory() {
    std::string pattern = (fs::temp_directory_path() / "ddprun_record_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = pattern;
    ::setenv("TORCHELASTIC_ERROR_FILE", file().c_str(), 1);
  }
  RecordDirectory(const RecordDirectory&) = delete;
  RecordDirectory& operator=(const RecordDirectory&) = delete;
  ~RecordDirectory() {
    ::unsetenv("TORCHELASTIC_ERROR_FILE");
    std::error_code ignored;  // a leftover temporary file is not an error
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] fs::path file() const { return path_ / "error.json"; }
  [[nodiscard]] std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("a record has the recorder's fields on one line without a newline") {
  CHECK(ddprun::error_record("ValueError: needle", "stack\n", 1767323045) ==
        R"({"message": {"message": "ValueError: needle", "extraInfo": {"py_callstack": "stack\n", )"
        R"("timestamp": "1767323045"}}})");
}

TEST_CASE("without a call stack readers find the message in py_callstack") {
  const auto record = boost::json::parse(ddprun::error_record("boom", "", 1));
  CHECK(record.at("message").at("extraInfo").at("py_callstack").as_string() == "boom");
}

TEST_CASE("every byte is preserved in JSON or becomes U+FFFD") {
  std::string ascii;
  for (int byte = 0; byte < 128; ++byte) ascii += static_cast<char>(byte);
  CHECK(decoded(ascii) == ascii);
  CHECK(decoded("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80");
  const std::string replacement = "\xEF\xBF\xBD";
  CHECK(decoded("a\xFFz") == "a" + replacement + "z");
  CHECK(decoded("cut \xE2\x82") == "cut " + replacement + replacement);
  CHECK(decoded("\xC0\x80") == replacement + replacement);                    // overlong
  CHECK(decoded("\xED\xA0\x80") == replacement + replacement + replacement);  // surrogate
  CHECK(decoded("\xF4\x90\x80\x80").size() == 4 * replacement.size());        // above the range
}

TEST_CASE("recording replaces the file atomically and leaves nothing else behind") {
  RecordDirectory directory;
  std::ofstream(directory.file()) << "an older record";
  REQUIRE(ddprun::record_error("TypeError: new") == 0);
  CHECK_THAT(content(directory.file()), ContainsSubstring("TypeError: new"));
  CHECK(directory.entries() == 1);
}

TEST_CASE("recording without a launcher fails with ENOENT") {
  ::unsetenv("TORCHELASTIC_ERROR_FILE");
  CHECK(ddprun::record_error("no launcher") == ENOENT);
  ::setenv("TORCHELASTIC_ERROR_FILE", "", 1);  // as set by --log-dir /dev/null
  CHECK(ddprun::record_error("no launcher") == ENOENT);
}

TEST_CASE("a record that cannot be written is an errno value, not a crash") {
  RecordDirectory directory;
  ::setenv("TORCHELASTIC_ERROR_FILE", (directory.file() / "below" / "a-file").c_str(), 1);
  CHECK(ddprun::record_error("lost") != 0);
}

TEST_CASE("an exception becomes a record with its type, and exit code 1") {
  RecordDirectory directory;
  CHECK(ddprun::recorded([]() -> int { throw std::out_of_range("sample 7"); }) == 1);
  const auto record = boost::json::parse(content(directory.file()));
  CHECK(record.at("message").at("message").as_string() == "std::out_of_range: sample 7");
}

TEST_CASE("a body that returns is not recorded and keeps its result") {
  RecordDirectory directory;
  CHECK(ddprun::recorded([] { return 5; }) == 5);
  CHECK(directory.entries() == 0);
}

TEST_CASE("with SIGPIPE ignored, writing to a pipe without a reader fails with EPIPE") {
  REQUIRE(ddprun::ignore_sigpipe() == 0);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  CHECK(::write(ends[1], "x", 1) == -1);
  CHECK(errno == EPIPE);
  ::close(ends[1]);
  ::signal(SIGPIPE, SIG_DFL);
}
