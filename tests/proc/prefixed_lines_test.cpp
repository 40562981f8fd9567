#include "agent/proc/prefixed_lines.hpp"

#include <string>

#include "agent/proc/limits.hpp"
#include "tests/support/catch.hpp"

using ddprun::LiveLine;
using ddprun::PrefixedLines;
using ddprun::rank_label;
using ddprun::text_behind_label;
using ddprun::TimePoint;

namespace {

constexpr TimePoint kBegin{};
constexpr auto kStep = ddprun::kRedrawInterval;
const std::string kClear = "\r\x1b[K";

std::string drawn(const std::string& bar) {
  return kClear + "\x1b[?7l" + bar + "\x1b[?7h";
}

struct Labelled : PrefixedLines {
  Labelled(const std::string& label, LiveLine* live) : PrefixedLines(live) { set_label(label); }
};

}  // namespace

TEST_CASE("a label names host and rank, in a colour of the rank") {
  CHECK(rank_label("vm", 3, false) == "vm:3| ");
  CHECK(rank_label("vm", 0, true) == "\x1b[36mvm:0| \x1b[0m");
  CHECK(rank_label("vm", 1, true) != rank_label("vm", 0, true));
  CHECK(rank_label("vm", 9, true) == "\x1b[33mvm:9| \x1b[0m");
}

TEST_CASE("every line has its label, however the stream is split") {
  Labelled stream("a| ", nullptr);
  CHECK(stream.feed("one\ntw", kBegin) == "a| one\n");
  CHECK(stream.feed("o", kBegin).empty());
  CHECK(stream.feed("\n\nthree", kBegin) == "a| two\na| \n");
  CHECK(stream.finish() == "a| three\n");
}

TEST_CASE("behind a label colours stay and end, and nothing moves the cursor") {
  CHECK(text_behind_label("plain\ttext") == "plain\ttext");
  CHECK(text_behind_label("\x1b[1;31mred\x1b[0m") == "\x1b[1;31mred\x1b[0m");
  CHECK(text_behind_label("\x1b[31mred") == "\x1b[31mred\x1b[0m");
  CHECK(text_behind_label("\x1b[2J\x1b[1Aup\x1b[K\x1b"
                          "7") == "up");
  CHECK(text_behind_label("cut\x1b[12") == "cut");
  CHECK(text_behind_label("cut\x1b") == "cut");
}

TEST_CASE("a bar is redrawn in place, a few times a second, and its last state stays as a line") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(stream.feed("\r 1 %", kBegin).empty());
  CHECK(stream.feed("\r 2 %", kBegin + kStep / 2).empty());
  CHECK(stream.feed("\r 3 %", kBegin + kStep) == drawn("a|  2 %"));
  CHECK(stream.feed("\r 4 %", kBegin + kStep * 3 / 2).empty());
  CHECK(stream.feed("\r100 %\n", kBegin + kStep * 7 / 4) == kClear + "a| 100 %\n");
}

TEST_CASE("other lines take a bar away, and it is drawn again below") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(one.feed(" 1 %\r", kBegin).empty());
  CHECK(one.feed(" 2 %\r", kBegin + kStep) == drawn("a|  2 %"));
  CHECK(other.feed("line\n", kBegin + kStep) == kClear + "b| line\n");
  CHECK(other.feed("line\n", kBegin + kStep) == "b| line\n");
  CHECK(one.feed(" 3 %\r", kBegin + 2 * kStep) == drawn("a|  3 %"));
}

TEST_CASE("of the bars of several ranks one is redrawn, until its line ends") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(one.feed("1\r", kBegin).empty());
  CHECK(other.feed("1\r", kBegin).empty());
  CHECK(one.feed("2\r", kBegin + kStep) == drawn("a| 2"));
  CHECK(other.feed("2\r", kBegin + kStep).empty());
  CHECK(one.feed("3\n", kBegin + 2 * kStep) == kClear + "a| 3\n");
  CHECK(other.feed("3\r", kBegin + 2 * kStep) == drawn("b| 3"));
}

TEST_CASE("a rank whose bar has stopped gives way to another one's") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(one.feed("1\r", kBegin).empty());
  CHECK(one.feed("2\r", kBegin + kStep) == drawn("a| 2"));
  CHECK(other.feed("1\r", kBegin).empty());
  const TimePoint later = kBegin + kStep + ddprun::kProgressInterval;
  CHECK(other.feed("2\r", later).empty());
  CHECK(other.feed("3\r", later + kStep) == drawn("b| 3"));
}

TEST_CASE("a bar where there is no terminal is a line every few seconds") {
  Labelled stream("a| ", nullptr);
  CHECK(stream.feed("1\r", kBegin).empty());
  CHECK(stream.feed("2\r", kBegin + kStep).empty());
  CHECK(stream.feed("3\r", kBegin + ddprun::kProgressInterval) == "a| 3\n");
}

TEST_CASE("raw text that has not ended its line is neither overwritten nor continued by others") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(live.make_way_for_raw("Password: ").empty());
  CHECK(stream.feed("1\r", kBegin).empty());
  CHECK(stream.feed("2\r", kBegin + kStep).empty());
  CHECK(stream.feed("line\n", kBegin + kStep) == "\na| line\n");
  CHECK(stream.feed("1\r", kBegin + kStep).empty());
  CHECK(stream.feed("2\r", kBegin + 2 * kStep) == drawn("a| 2"));
  CHECK(live.make_way_for_raw("raw\n") == kClear);
}

TEST_CASE("a stream that is gone does not keep the live line") {
  LiveLine live;
  {
    Labelled one("a| ", &live);
    CHECK(one.feed("1\r", kBegin).empty());
    CHECK(one.feed("2\r", kBegin + kStep) == drawn("a| 2"));
  }
  Labelled other("b| ", &live);
  CHECK(other.feed("1\r", kBegin).empty());
  CHECK(other.feed("2\r", kBegin + kStep) == drawn("b| 2"));
}
