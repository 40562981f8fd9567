#include "agent/output/lines.hpp"

#include <random>
#include <string>
#include <vector>

#include "agent/output/prefixed_lines.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/pieces.hpp"

using ddprun::LineAssembler;
using ddprun::TimePoint;

namespace {

/// The lines shown for a stream that arrives in these pieces.
class Shown {
 public:
  Shown& feed(std::string_view bytes, TimePoint now = TimePoint{}) {
    assembler_.feed(bytes, now, keep(), keep());
    return *this;
  }
  Shown& finish() {
    assembler_.finish(keep());
    return *this;
  }
  std::vector<std::string> lines;

 private:
  LineAssembler::Emit keep() {
    return [this](std::string_view line) { lines.emplace_back(line); };
  }
  LineAssembler assembler_;
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a line is shown when its newline is there, not before") {
  Shown shown;
  CHECK(shown.feed("one\ntw").lines == Lines{"one"});
  CHECK(shown.feed("o").lines == Lines{"one"});
  CHECK(shown.feed("\n\n").lines == Lines{"one", "two", ""});
}

TEST_CASE("the last line is shown at the end of the stream although it is unfinished") {
  CHECK(Shown().feed("done\nalmost").finish().lines == Lines{"done", "almost"});
  CHECK(Shown().feed("done\n").finish().lines == Lines{"done"});
  CHECK(Shown().finish().lines.empty());
}

TEST_CASE("updates of a progress bar collapse to the last state") {
  CHECK(Shown().feed("10%\r20%\r30%\n").lines == Lines{"30%"});
  CHECK(Shown().feed("\r10%").feed("\r20%").feed("\r30%\nnext\n").lines == Lines{"30%", "next"});
  CHECK(Shown().feed("10%\r").feed("20%\r").feed("30%\r\n").lines == Lines{"30%"});
  CHECK(Shown().feed("10%\r").feed("20%\r").finish().lines == Lines{"20%"});
}

TEST_CASE("Windows line ends are line ends") {
  CHECK(Shown().feed("one\r\ntwo\r").feed("\nthree\r\r\n").lines == Lines{"one", "two", "three"});
}

TEST_CASE("bytes that are not text pass unchanged") {
  const std::string bytes("\xff\x00\x1b[31m\xc3", 8);
  CHECK(Shown().feed(bytes + "\n").lines == Lines{bytes});
}

TEST_CASE("a line of exactly the limit is whole, one byte more is cut and counted") {
  const std::string most(ddprun::kLineBytesMax, 'a');
  CHECK(Shown().feed(most).feed("\n").lines == Lines{most});
  const auto cut = Shown().feed(most).feed("bcd").feed("e\nnext\n").lines;
  REQUIRE(cut.size() == 2);
  CHECK(cut[0] == most + " [ddprun: 4 more bytes of this line not shown]");
  CHECK(cut[1] == "next");
}

TEST_CASE("a bar that overflows its line starts again at its next return") {
  const std::string most(ddprun::kLineBytesMax, 'a');
  CHECK(Shown().feed(most).feed("xyz").feed("\rshort\n").lines == Lines{"short"});
}

TEST_CASE("a long progress bar shows its state now and then, and its end") {
  const TimePoint start{};
  const auto later = start + ddprun::kProgressInterval;
  Shown shown;
  shown.feed("1%\r", start).feed("2%\r", later - std::chrono::milliseconds(1));
  CHECK(shown.lines.empty());
  shown.feed("3%\r", later).feed("4%\r", later);
  CHECK(shown.lines == Lines{"3%"});
  shown.feed("5%\r6", later + ddprun::kProgressInterval);
  CHECK(shown.lines == Lines{"3%", "5%"});
  shown.feed("%\n", later + ddprun::kProgressInterval);
  CHECK(shown.lines == Lines{"3%", "5%", "6%"});
}

TEST_CASE("a line without returns is never shown in parts, however long it takes") {
  const TimePoint start{};
  Shown shown;
  shown.feed("Downloading ... ", start).feed("still ", start + 10 * ddprun::kProgressInterval);
  CHECK(shown.lines.empty());
}

TEST_CASE("the lines do not depend on where the stream is cut") {
  std::mt19937 random(20260101);  // NOLINT: the seed makes the failure repeatable
  const std::string alphabet = "ab\r\n";
  for (int round = 0; round < 2000; ++round) {
    std::string stream;
    for (auto length = random() % 24; length > 0; --length) stream += alphabet[random() % 4];
    const Lines whole = Shown().feed(stream).finish().lines;
    Shown pieces;
    ddprun::test::feed_in_pieces(random, stream,
                                 [&](std::string_view piece) { pieces.feed(piece); });
    INFO("stream " << Catch::StringMaker<std::string>::convert(stream));
    REQUIRE(pieces.finish().lines == whole);
  }
}
