// feed_in_pieces: a stream as it may arrive, cut anywhere.
#pragma once

#include <random>
#include <string_view>

namespace ddprun::test {

/// Calls `feed` with pieces of one to four bytes, in order, until all of `stream` has been passed.
template <class Feed>
void feed_in_pieces(std::mt19937& random, std::string_view stream, const Feed& feed) {
  while (!stream.empty()) {
    const std::string_view piece = stream.substr(0, 1 + random() % 4);
    feed(piece);
    stream.remove_prefix(piece.size());
  }
}

}  // namespace ddprun::test
