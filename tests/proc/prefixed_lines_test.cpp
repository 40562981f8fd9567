#include "agent/output/prefixed_lines.hpp"

#include <string>

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

/// What is shown of a piece, at once and when it is due.
std::string fed(PrefixedLines& stream, const std::string& bytes, TimePoint now) {
  const std::string shown = stream.feed(bytes, now);
  return stream.due() ? shown + stream.show_unfinished(now + kStep) : shown;
}

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
  CHECK(stream.due() == kBegin + kStep);
  CHECK(stream.show_unfinished(kBegin + kStep) == drawn("a|  2 %"));
  CHECK_FALSE(stream.due());
  CHECK(stream.feed("\r 4 %", kBegin + kStep * 3 / 2).empty());
  CHECK(stream.due() == kBegin + kStep * 5 / 2);
  CHECK(stream.feed("\r100 %\n", kBegin + kStep * 7 / 4) == kClear + "a| 100 %\n");
  CHECK(stream.show_unfinished(*stream.due()).empty());
}

TEST_CASE("other lines take a bar away, and it is drawn again below") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(fed(one, " 1 %\r", kBegin) == drawn("a|  1 %"));
  CHECK(other.feed("line\n", kBegin + kStep) == kClear + "b| line\n");
  CHECK(other.feed("line\n", kBegin + kStep) == "b| line\n");
  CHECK(fed(one, " 3 %\r", kBegin + 2 * kStep) == drawn("a|  3 %"));
}

TEST_CASE("of the bars of several ranks one is redrawn, until its line ends") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(fed(one, "2\r", kBegin) == drawn("a| 2"));
  CHECK(fed(other, "2\r", kBegin + kStep).empty());
  CHECK(one.feed("3\n", kBegin + 2 * kStep) == kClear + "a| 3\n");
  CHECK(fed(other, "3\r", kBegin + 2 * kStep) == drawn("b| 3"));
}

TEST_CASE("a rank whose bar has stopped gives way to another one's") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(fed(one, "2\r", kBegin) == drawn("a| 2"));
  const TimePoint later = kBegin + ddprun::kProgressInterval;
  CHECK(fed(other, "2\r", later).empty());
  CHECK(fed(other, "3\r", later + 2 * kStep) == drawn("b| 3"));
}

TEST_CASE("a bar where there is no terminal is a line every few seconds") {
  Labelled stream("a| ", nullptr);
  CHECK(stream.feed("1\r", kBegin).empty());
  CHECK(stream.feed("2\r", kBegin + kStep).empty());
  CHECK(stream.feed("3\r", kBegin + ddprun::kProgressInterval) == "a| 3\n");
  CHECK_FALSE(stream.due());
}

TEST_CASE("a terminal that takes no sequences gets none") {
  LiveLine live;
  live.draw_nothing();
  Labelled stream("a| ", &live);
  CHECK(fed(stream, "1\r", kBegin).empty());
  const TimePoint later = kBegin + kStep + ddprun::kProgressInterval;
  CHECK(stream.due() == later);
  CHECK(stream.feed("2\r", kBegin + 2 * kStep).empty());
  CHECK(stream.show_unfinished(later) == "a| 2\n");
  CHECK(stream.feed("3\n", later) == "a| 3\n");
  CHECK(fed(stream, "name? ", later) == "a| name? ");
}

TEST_CASE("several bars of one rank are drawn as the one that changed last") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(stream.feed("\router 1\n\rinner 1\x1b[A", kBegin) == "a| outer 1\n");
  CHECK(stream.show_unfinished(kBegin + kStep) == drawn("a| inner 1"));
  CHECK(fed(stream, "\n\rinner 2\x1b[A", kBegin + kStep) == drawn("a| inner 2"));
  CHECK(fed(stream, "\router 2", kBegin + 2 * kStep) == drawn("a| outer 2"));
  CHECK(stream.finish() == kClear + "a| outer 2\na| inner 2\n");
}

TEST_CASE("a line behind several bars is shown while it may still be redrawn, and then final") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(stream.feed("\n\rinner\x1b[A\rdone\nend\n", kBegin) == "a| \na| done\n");
  CHECK(stream.show_unfinished(kBegin + kStep) == drawn("a| end"));
  CHECK(stream.due() == kBegin + ddprun::kSettleAfter);
  CHECK(stream.show_unfinished(kBegin + ddprun::kSettleAfter) == kClear + "a| end\n");
  CHECK_FALSE(stream.due());
}

TEST_CASE("a prompt is shown although its line has not ended, and not again when it ends") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(stream.feed("line\nname? ", kBegin) == "a| line\n");
  CHECK(stream.due() == kBegin + kStep);
  CHECK(stream.show_unfinished(kBegin + kStep) == "a| name? ");
  CHECK_FALSE(stream.due());
  CHECK(fed(stream, "you", kBegin + 2 * kStep) == "you");
  CHECK(stream.feed(" there\nnext\n", kBegin + 3 * kStep) == " there\na| next\n");
}

TEST_CASE("lines of others begin below a prompt, and what follows it has a label again") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(fed(one, "name? ", kBegin) == "a| name? ");
  CHECK(other.feed("line\n", kBegin + kStep) == "\nb| line\n");
  CHECK(one.feed("you\nnext\n", kBegin + kStep) == "a| you\na| next\n");
  CHECK(fed(one, "loading", kBegin) == "a| loading");
  CHECK(other.feed("line\n", kBegin) == "\nb| line\n");
  CHECK(one.feed("\n", kBegin).empty());
}

TEST_CASE("prompts of several ranks wait for each other") {
  LiveLine live;
  Labelled one("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(fed(one, "loading", kBegin) == "a| loading");
  CHECK(fed(other, "loading", kBegin).empty());
  CHECK(other.due() == kBegin + 2 * kStep);
  const TimePoint later = kBegin + kStep + ddprun::kInterruptAfter + kStep;
  CHECK(other.show_unfinished(later) == "\nb| loading");
}

TEST_CASE("a prompt that becomes a bar is redrawn") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(fed(stream, "loading", kBegin) == "a| loading");
  CHECK(fed(stream, "\r10 %", kBegin + kStep) == drawn("a| 10 %"));
  CHECK(stream.feed("\rdone\n", kBegin + 2 * kStep) == kClear + "a| done\n");
  CHECK(fed(stream, "loading", kBegin) == "a| loading");
  CHECK(stream.feed("\rdone\n", kBegin + kStep) == kClear + "a| done\n");
}

TEST_CASE("raw text that has not ended its line is neither overwritten nor continued by others") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(live.make_way_for_raw("Password: ", "r| ", kBegin).empty());
  CHECK(fed(stream, "2\r", kBegin).empty());
  CHECK(stream.feed("line\n", kBegin + kStep) == "\na| line\n");
  CHECK(fed(stream, "2\r", kBegin + kStep) == drawn("a| 2"));
  CHECK(live.make_way_for_raw("raw\n", "r| ", kBegin) == kClear);
  CHECK(live.make_way_for_raw("\x1b[?25h", "r| ", kBegin).empty());
  CHECK(stream.feed("line\n", kBegin) == "a| line\n");
}

TEST_CASE("raw text continues a prompt of its own rank, and begins below that of another one") {
  LiveLine live;
  Labelled own("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(fed(own, "name? ", kBegin) == "a| name? ");
  CHECK(live.make_way_for_raw("you\n", "a| ", kBegin).empty());
  CHECK(fed(other, "name? ", kBegin) == "b| name? ");
  CHECK(live.make_way_for_raw("you\n", "a| ", kBegin) == "\n");
}

TEST_CASE("a bar begins below raw text of its own rank that waits for nothing") {
  LiveLine live;
  Labelled own("a| ", &live);
  Labelled other("b| ", &live);
  CHECK(live.make_way_for_raw("epoch 1: ", "a| ", kBegin).empty());
  const TimePoint later = kBegin + ddprun::kInterruptAfter;
  CHECK(fed(other, "1\r", later).empty());
  CHECK(fed(own, "1\r", later) == "\n" + drawn("a| 1"));
}

TEST_CASE("after lines of ddprun's own no newline is missing") {
  LiveLine live;
  Labelled stream("a| ", &live);
  CHECK(fed(stream, "name? ", kBegin) == "a| name? ");
  live.forget();
  CHECK(stream.feed("you\n", kBegin) == "a| you\n");
}

TEST_CASE("a stream that is gone does not keep the live line") {
  LiveLine live;
  {
    Labelled one("a| ", &live);
    CHECK(fed(one, "2\r", kBegin) == drawn("a| 2"));
  }
  Labelled other("b| ", &live);
  CHECK(fed(other, "2\r", kBegin + kStep) == drawn("b| 2"));
}
