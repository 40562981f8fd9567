#include "trainer/metrics/console.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "tests/support/catch.hpp"
#include "trainer/files/descriptor.hpp"

using namespace ddprun::trainer;
using namespace std::chrono_literals;
using Kind = ConsoleOptions::Kind;

namespace {

/// Both ends of a pipe, to read what the console wrote.
class Screen {
 public:
  Screen() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    reader_ = Descriptor(ends[0]);
    writer_ = Descriptor(ends[1]);
  }
  [[nodiscard]] ConsoleOptions options(Kind kind) const {
    return {writer_.number(), kind, 80, 390};
  }
  std::string take() {
    std::array<char, 4096> buffer{};
    const ssize_t size = ::read(reader_.number(), buffer.data(), buffer.size());
    return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
  }

 private:
  Descriptor reader_;
  Descriptor writer_;
};

BarState state_at(std::uint64_t step) {
  return {step, 390, step / 195, 2, 1.5321, 0.4512, 1203.4, 0.1234};
}

MetricRow row_of(Phase phase) {
  MetricRow row;
  row.phase = phase;
  row.step = 120;
  row.epoch = 0.3069;
  row.means = {1.5321, 0.4512, 0.7, 0.9};
  row.lr = 0.2;
  row.images_per_second = 1203.4;
  row.seconds = 12.34;
  return row;
}

const Console::Time kStart{};

}  // namespace

TEST_CASE("the bar shows the position of the run") {
  CHECK(bar_line(state_at(195), {12s}, 120) ==
        "epoch 2/2 [===============>              ] 195/390 50%  loss 1.532  top1 45.1%  1203 img/s"
        "  eta 0:12  lr 0.1234");
  CHECK_THAT(bar_line(state_at(390), {0s}, 120), ContainsSubstring("==] 390/390 100%"));
  CHECK_THAT(bar_line(state_at(0), {}, 120),
             ContainsSubstring("[>   ") && !ContainsSubstring("eta"));
}

TEST_CASE("the bar shows no loss and no speed before the first row of metrics") {
  const std::string line = bar_line({3, 390, 0, 2, 0, 0, 0, 0.1234}, {12s}, 120);
  CHECK_THAT(line, ContainsSubstring("3/390 0%  eta 0:12  lr 0.1234"));
  CHECK_THAT(line, !ContainsSubstring("loss") && !ContainsSubstring("img/s"));
}

TEST_CASE("the bar never exceeds the terminal, and drops its details from the right") {
  for (int columns = 0; columns < 200; ++columns) {
    REQUIRE(bar_line(state_at(120), {12s}, columns).size() <= static_cast<std::size_t>(columns));
  }
  CHECK_THAT(bar_line(state_at(120), {12s}, 50),
             ContainsSubstring("loss") && !ContainsSubstring("lr "));
}

TEST_CASE("a run without steps and a step beyond the end are handled") {
  CHECK_THAT(bar_line({}, {}, 80), ContainsSubstring("0/0 100%"));
  CHECK_THAT(bar_line({500, 390, 9, 2, 0, 0, 0, 0}, {}, 80), ContainsSubstring("100%"));
}

TEST_CASE("without a terminal the output is plain lines without control characters") {
  Screen screen;
  Console console(screen.options(Kind::kPlain));
  console.progress(state_at(1), kStart);
  CHECK(screen.take().empty());
  console.row(row_of(Phase::kTrain));
  console.say("checkpoint written");
  console.finish();
  CHECK(screen.take() == plain_line(row_of(Phase::kTrain), 390) + "\ncheckpoint written\n");
}

TEST_CASE("on a terminal the bar is redrawn at most ten times a second, and at the end") {
  Screen screen;
  Console console(screen.options(Kind::kTerminal));
  console.progress(state_at(1), kStart);
  CHECK(screen.take() == "\r\x1b[K" + bar_line(state_at(1), {}, 79));
  console.progress(state_at(2), kStart + 99ms);
  CHECK(screen.take().empty());
  console.progress(state_at(3), kStart + 100ms);
  CHECK_THAT(screen.take(), ContainsSubstring(" 3/390"));
  console.progress(state_at(390), kStart + 101ms);
  CHECK_THAT(screen.take(), ContainsSubstring("390/390 100%"));
}

TEST_CASE("the remaining time is estimated from the steps of this process") {
  Screen screen;
  Console console(screen.options(Kind::kTerminal));
  console.progress(state_at(190), kStart);  // resumed at 190: no rate known yet
  CHECK_THAT(screen.take(), !ContainsSubstring("eta"));
  console.progress(state_at(290), kStart + 50s);  // 100 steps in 50 s, 100 to go
  CHECK_THAT(screen.take(), ContainsSubstring("eta 0:50"));
}

TEST_CASE("rows and sentences are printed above the bar, which stays the last line") {
  Screen screen;
  Console console(screen.options(Kind::kTerminal));
  console.progress(state_at(1), kStart);
  (void)screen.take();
  console.row(row_of(Phase::kTrain));  // the bar shows it already
  CHECK(screen.take().empty());
  console.row(row_of(Phase::kTest));
  CHECK(screen.take() ==
        "\r\x1b[K" + plain_line(row_of(Phase::kTest), 390) + "\n" + bar_line(state_at(1), {}, 79));
  console.finish();
  CHECK(screen.take() == "\n");
  console.finish();
  CHECK(screen.take().empty());
}

TEST_CASE("a pipe is not a terminal; a full or closed console does not stop training") {
  Screen screen;
  CHECK(console_for(screen.options(Kind::kPlain).descriptor, "xterm").kind == Kind::kPlain);
  Console closed({-1, Kind::kPlain, 80, 390});
  closed.say("no reader");
  Console console(screen.options(Kind::kPlain));
  for (int i = 0; i < 2000; ++i) console.say(std::string(100, 'x'));  // more than a pipe holds
  CHECK_FALSE(screen.take().empty());
}
