#include "rendezvous/protocol/frame.hpp"

#include <vector>

#include "rendezvous/protocol/limits.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::protocol;

TEST_CASE("a frame is its length in four big-endian bytes and the body") {
  CHECK(frame("abc") == std::string("\0\0\0\3abc", 7));
}

TEST_CASE("frames are complete however the bytes are split") {
  const std::vector<std::string> bodies{"a", "second", std::string(300, 'x')};
  std::string stream;
  for (const auto& body : bodies) stream += frame(body);
  for (std::size_t piece = 1; piece < stream.size(); ++piece) {
    FrameReader reader;
    std::vector<std::string> got;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (;;) {
        const auto body = reader.next();
        REQUIRE(body.has_value());
        if (!*body) break;
        got.push_back(**body);
      }
    }
    CHECK(got == bodies);
    CHECK(reader.pending() == 0);
  }
}

TEST_CASE("an empty frame ends the stream") {
  FrameReader reader;
  reader.feed(std::string(4, '\0'));
  CHECK(reader.next().has_error());
}

TEST_CASE("a frame at the limit is accepted, one beyond is refused before its body arrives") {
  FrameReader at_limit;
  at_limit.feed(frame(std::string(kFrameBytesMax, 'x')));
  const auto body = at_limit.next();
  REQUIRE(body.has_value());
  CHECK((*body)->size() == kFrameBytesMax);

  FrameReader beyond;
  beyond.feed(std::string("\x00\x10\x00\x01", 4));
  const auto refused = beyond.next();
  REQUIRE(refused.has_error());
  CHECK(refused.error().sentence ==
        "the peer announced a frame of 1048577 bytes; the limit is 1048576");
}

TEST_CASE("a long stream of small frames does not grow the buffer") {
  FrameReader reader;
  for (int i = 0; i < 10'000; ++i) {
    reader.feed(frame("0123456789"));
    CHECK(reader.next().has_value());
    CHECK(reader.pending() == 0);
  }
}
