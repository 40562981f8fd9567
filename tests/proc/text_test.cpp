
#include "agent/output/output_plan.hpp"
#include "agent/output/tail.hpp"
#include "tests/proc/support.hpp"

using ddprun::line_prefix;
using ddprun::LinePrefixMacros;
using ddprun::Route;
using ddprun::route_of;
using ddprun::shares_a_way;
using ddprun::Stream;
using ddprun::StreamWish;
using ddprun::Tail;

namespace {

LinePrefixMacros macros() {
  LinePrefixMacros of;
  of.role_name = "trainer";
  of.local_rank = 3;
  of.rank = 11;
  of.hostname = "node7";
  return of;
}

StreamWish wish() {
  return {};
}

}  // namespace

TEST_CASE("the prefix of a line is torchrun's by default") {
  CHECK(line_prefix("[${role_name}${local_rank}]:", macros()) == "[trainer3]:");
}

TEST_CASE("a prefix template knows four macros, with and without braces") {
  CHECK(line_prefix("${hostname}:${rank}| ", macros()) == "node7:11| ");
  CHECK(line_prefix("$role_name-$local_rank $rank", macros()) == "trainer-3 11");
}

TEST_CASE("in a prefix template what is unknown stays and a double dollar is one") {
  CHECK(line_prefix("${gpu}$gpu$rank_x ${rank $ ${} $", macros()) ==
        "${gpu}$gpu$rank_x ${rank $ ${} $");
  CHECK(line_prefix("$$rank $$$rank", macros()) == "$rank $11");
}

TEST_CASE("a macro's value is not expanded again") {
  auto of = macros();
  of.role_name = "${rank}";
  CHECK(line_prefix("${role_name}", of) == "${rank}");
}

TEST_CASE("un-redirected stdout is the launcher's own, un-redirected stderr is passed on") {
  CHECK(route_of(Stream::kStdout, wish()) == Route::kInherit);
  CHECK(route_of(Stream::kStderr, wish()) == Route::kPass);
}

TEST_CASE("a stream that is kept in a file passes through the agent, or is in the file alone") {
  StreamWish kept = wish();
  kept.kept = true;
  CHECK(route_of(Stream::kStdout, kept) == Route::kPass);
  CHECK(route_of(Stream::kStderr, kept) == Route::kPass);
  kept.show = StreamWish::Show::kLabelled;
  CHECK(route_of(Stream::kStdout, kept) == Route::kLabel);
  kept.shown = false;
  CHECK(route_of(Stream::kStdout, kept) == Route::kFile);
  CHECK(route_of(Stream::kStderr, kept) == Route::kFile);
  kept = wish();
  kept.kept = true;
  kept.files = false;
  CHECK(route_of(Stream::kStdout, kept) == Route::kInherit);
}

TEST_CASE("with a raw console stderr is inherited too") {
  auto raw = wish();
  raw.quoted = false;
  CHECK(route_of(Stream::kStderr, raw) == Route::kInherit);
}

TEST_CASE("a redirected stream is written by the worker, a tee'd one by the agent too") {
  auto of = wish();
  of.redirected = true;
  CHECK(route_of(Stream::kStdout, of) == Route::kFile);
  CHECK(route_of(Stream::kStderr, of) == Route::kFile);
  of.limited = true;
  CHECK(route_of(Stream::kStdout, of) == Route::kLog);
  of.limited = false;
  of.teed = true;
  CHECK(route_of(Stream::kStdout, of) == Route::kTee);
}

TEST_CASE("a rank that is not shown writes files only, and its stderr is still kept") {
  auto of = wish();
  of.shown = false;
  CHECK(route_of(Stream::kStdout, of) == Route::kDiscard);
  CHECK(route_of(Stream::kStderr, of) == Route::kKeep);
  of.teed = true;
  CHECK(route_of(Stream::kStdout, of) == Route::kFile);
  of.teed = false;
  of.redirected = true;
  CHECK(route_of(Stream::kStdout, of) == Route::kFile);
}

TEST_CASE("without log files neither redirects nor tee have an effect") {
  auto of = wish();
  of.files = false;
  of.redirected = true;
  of.teed = true;
  CHECK(route_of(Stream::kStdout, of) == Route::kInherit);
  CHECK(route_of(Stream::kStderr, of) == Route::kPass);
}

TEST_CASE("labels and hidden streams are for what is neither redirected nor tee'd") {
  using Show = StreamWish::Show;
  const std::pair<Show, Route> routes[] = {{Show::kLabelled, Route::kLabel},
                                           {Show::kPassed, Route::kPass},
                                           {Show::kInFile, Route::kLog}};
  for (const auto& [show, route] : routes) {
    StreamWish of = wish();
    of.show = show;
    CHECK(route_of(Stream::kStdout, of) == route);
    of.shown = false;
    CHECK(route_of(Stream::kStdout, of) == Route::kDiscard);
    CHECK(route_of(Stream::kStderr, of) == Route::kKeep);
    of.shown = of.redirected = true;
    CHECK(route_of(Stream::kStdout, of) == Route::kFile);
    of.teed = true;
    CHECK(route_of(Stream::kStdout, of) == Route::kTee);
  }
  StreamWish without_files = wish();
  without_files.show = Show::kInFile;
  without_files.files = false;
  CHECK(route_of(Stream::kStdout, without_files) == Route::kLabel);
}

TEST_CASE("stdout goes the way of stderr where both are passed on to the same file") {
  CHECK(shares_a_way(Route::kInherit, Route::kPass, true));
  CHECK_FALSE(shares_a_way(Route::kInherit, Route::kPass, false));
  CHECK_FALSE(shares_a_way(Route::kInherit, Route::kInherit, true));  // --console=raw
  for (const Route redirected : {Route::kFile, Route::kLog, Route::kTee}) {
    CHECK_FALSE(shares_a_way(redirected, Route::kPass, true));
    CHECK_FALSE(shares_a_way(Route::kInherit, redirected, true));
  }
  CHECK_FALSE(shares_a_way(Route::kDiscard, Route::kKeep, true));  // a rank that is not shown
  CHECK(shares_a_way(Route::kLabel, Route::kLabel, true));
  CHECK_FALSE(shares_a_way(Route::kLabel, Route::kLabel, false));
  CHECK_FALSE(shares_a_way(Route::kPass, Route::kLabel, true));
}

TEST_CASE("a tail keeps the last bytes, to the byte") {
  Tail tail(10);
  tail.append("123");
  CHECK(tail.text() == "123");
  tail.append("4567890");
  CHECK(tail.text() == "1234567890");
  tail.append("a");
  CHECK(tail.text() == "234567890a");
  for (int count = 0; count < 1000; ++count) tail.append("xy");
  CHECK(tail.text() == "xyxyxyxyxy");
  tail.append(std::string(100, 'b') + "end");
  CHECK(tail.text() == "bbbbbbbend");
}

TEST_CASE("a tail keeps the beginning and the end of a very long line, and the lines before it") {
  Tail tail(64 * 1024);
  tail.append("needle\nbegin");
  for (int count = 0; count < 100; ++count) tail.append(std::string(10'000, 'x'));
  tail.append("end\nlast\n");
  const std::string text = tail.text();
  CHECK(text.starts_with("needle\nbeginxxx"));
  CHECK(text.ends_with("xxxend\nlast\n"));
  CHECK(text.size() < 10'000);
  const proc_test::TempDir directory;
  proc_test::write_file(directory / "log", "needle\nbegin" + std::string(300'000, 'x') + "end");
  const std::string of_file = ddprun::tail_of_file(directory / "log", 64 * 1024);
  CHECK(of_file.starts_with("needle\nbeginxxx"));
  CHECK(of_file.ends_with("xxxend"));
}

TEST_CASE("the tail of a file is its last bytes; a file that is not there has none") {
  const proc_test::TempDir directory;
  proc_test::write_file(directory / "log", "0123456789");
  CHECK(ddprun::tail_of_file(directory / "log", 4) == "6789");
  CHECK(ddprun::tail_of_file(directory / "log", 10) == "0123456789");
  CHECK(ddprun::tail_of_file(directory / "log", 11) == "0123456789");
  CHECK(ddprun::tail_of_file(directory / "none", 4).empty());
  CHECK(ddprun::tail_of_file(directory / "log", 4, 8) == "89");
  CHECK(ddprun::tail_of_file(directory / "log", 4, 10).empty());
  CHECK(ddprun::tail_of_file(directory / "log", 4, 11) == "6789");  // it was cut, and began again
  CHECK(ddprun::size_of_file(directory / "log") == 10);
  CHECK(ddprun::size_of_file(directory / "none") == 0);
}

TEST_CASE("the tail of what is no regular file is empty, and its writer is not waited for") {
  const proc_test::TempDir directory;
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  CHECK(ddprun::tail_of_file(directory / "fifo", 4).empty());
  proc_test::write_file(directory / "secret", "secret");
  std::filesystem::create_symlink(directory / "secret", directory / "link");
  CHECK(ddprun::tail_of_file(directory / "link", 4).empty());
  CHECK(ddprun::tail_of_file("/dev/zero", 4).empty());
}
