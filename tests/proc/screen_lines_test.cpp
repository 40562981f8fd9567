#include "agent/output/lines.hpp"

#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/pieces.hpp"
#include "tests/support/sentences.hpp"

using ddprun::ScreenLine;
using ddprun::ScreenLines;

namespace {

using Lines = std::vector<std::string>;

/// The lines of a stream that arrives in these pieces.
class Screen {
 public:
  Screen& feed(std::string_view bytes) {
    screen_.feed(bytes, keep());
    return *this;
  }
  Screen& settle() {
    screen_.settle(keep());
    return *this;
  }
  Screen& finish() {
    screen_.finish(keep());
    return *this;
  }
  std::string unfinished() {
    const ScreenLine* line = screen_.unfinished();
    return line == nullptr ? "" : line->text;
  }
  Lines lines;

 private:
  ScreenLines::Emit keep() {
    return [this](const ScreenLine& line) { lines.push_back(line.text); };
  }
  ScreenLines screen_;
};

}  // namespace

TEST_CASE("a line is final at its newline, and what has none is unfinished") {
  Screen screen;
  CHECK(screen.feed("one\ntw").lines == Lines{"one"});
  CHECK(screen.unfinished() == "tw");
  CHECK(screen.feed("o\n\n").lines == Lines{"one", "two", ""});
  CHECK(screen.unfinished().empty());
  CHECK(screen.feed("end").finish().lines == Lines{"one", "two", "", "end"});
  CHECK(Screen().feed("one\n").finish().lines == Lines{"one"});
}

TEST_CASE("text behind a return replaces the line, and a return before a newline does not") {
  CHECK(Screen().feed("10%\r20%\r30%\n").lines == Lines{"30%"});
  CHECK(Screen().feed("one\r\ntwo\r").feed("\nthree\r\r\n").lines == Lines{"one", "two", "three"});
  CHECK(Screen().feed("100 %\r\x1b[0m\n").lines == Lines{"100 %"});
  CHECK(Screen().feed("long\r\x1b[Knew\n").lines == Lines{"new"});
  CHECK(Screen().feed("long\x1b[2K\x1b[Gnew\n").lines == Lines{"new"});
}

TEST_CASE("a bar that was wiped leaves no line") {
  CHECK(Screen().feed("\r10%\r   \r").finish().lines.empty());
  CHECK(Screen().feed("\r10%\r\x1b[K").finish().lines.empty());
  CHECK(Screen().feed("\r10%\r\x1b[Knext\n").lines == Lines{"next"});
}

TEST_CASE("colours stay, and sequences that are cut are completed") {
  CHECK(Screen().feed("\x1b[3").feed("1mred\x1b[0").feed("m\n").lines ==
        Lines{"\x1b[31mred\x1b[0m"});
  CHECK(Screen().feed("a\x1b]0;title").feed("\a\x1b[?25l").feed("b\n").lines == Lines{"ab"});
  CHECK(Screen().feed("x\r\x1b[32mgreen\n").lines == Lines{"\x1b[32mgreen"});
  CHECK(Screen().feed("a\x1b]binary\nb\x1b[").feed("\nc\n").lines == Lines{"a", "b", "c"});
  const std::string never_ends = "a\x1b]" + std::string(5000, 'x');
  CHECK(Screen().feed(never_ends).feed("b\n").lines == Lines{"ab"});
}

TEST_CASE("nested bars of tqdm leave the last state of each") {
  Screen screen;
  screen.feed("\router 0");
  for (int i = 0; i < 100; ++i) {
    screen.feed("\n").feed("\rinner " + std::to_string(i)).feed("\x1b[A");
    if (i % 10 == 9) screen.feed("\router " + std::to_string(i));
  }
  CHECK(screen.lines == Lines{"outer 0"});
  CHECK(screen.unfinished() == "outer 99");
  CHECK(screen.settle().lines.size() == 1);
  CHECK(screen.feed("\n\x1b[2K\x1b[A\router 100\nend\n").finish().lines ==
        Lines{"outer 0", "outer 100", "end"});
}

TEST_CASE("a table that is drawn from its end upwards leaves its last state") {
  Screen screen;
  screen.feed("one 0\ntwo 0\nsum 0");
  for (int i = 1; i < 100; ++i) {
    const std::string n = std::to_string(i);
    screen.feed("\r\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2Kone " + n + "\ntwo " + n + "\nsum " + n);
  }
  CHECK(screen.unfinished() == "sum 99");
  CHECK(screen.finish().lines == Lines{"one 0", "two 0", "one 99", "two 99", "sum 99"});
}

TEST_CASE("lines above the cursor are final after silence") {
  Screen screen;
  screen.feed("\nx\x1b[3A\rtop\x1b[0J\nnext\n");
  CHECK(screen.settle().lines == Lines{"", "top", "next"});
}

TEST_CASE("a stream that moves up without end keeps a few lines") {
  Screen screen;
  for (int i = 0; i < 1000; ++i) screen.feed("\x1b[999999999999A").feed("\x1b[A\x1bM");
  for (int i = 0; i < 100; ++i) screen.feed("line\n");
  CHECK(screen.lines.size() > 100 - ddprun::kRedrawnLinesMax);
  CHECK(screen.finish().lines.size() == 100);
}

TEST_CASE("a line beyond the limit is cut, and says so") {
  const std::string most(ddprun::kLineBytesMax, 'a');
  CHECK(Screen().feed(most).feed("bcd\n").lines ==
        Lines{most + " [ddprun: 3" + ddprun::test::kBytesNotShown});
  CHECK(Screen().feed(most).feed("x\rshort\n").lines == Lines{"short"});
}

TEST_CASE("the final lines do not depend on where the stream is cut") {
  std::mt19937 random(20260101);  // NOLINT: the seed makes the failure repeatable
  const std::vector<std::string> words = {"a", "b", "\n", "\r", "\x1b[A", "\x1b[2K", "\x1b[31m"};
  for (int round = 0; round < 2000; ++round) {
    std::string stream;
    for (auto length = random() % 24; length > 0; --length) stream += words[random() % 7];
    const Lines whole = Screen().feed(stream).finish().lines;
    Screen pieces;
    ddprun::test::feed_in_pieces(random, stream,
                                 [&](std::string_view piece) { pieces.feed(piece); });
    INFO("stream " << Catch::StringMaker<std::string>::convert(stream));
    REQUIRE(pieces.finish().lines == whole);
  }
}
