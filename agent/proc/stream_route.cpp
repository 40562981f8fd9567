#include "agent/proc/stream_route.hpp"

namespace ddprun {

Route route_of(Stream stream, const StreamWish& wish) {
  const Route to_file = wish.limited ? Route::kLog : Route::kFile;
  if (wish.files && wish.teed) return wish.shown ? Route::kTee : to_file;
  if (wish.files && wish.redirected) return to_file;
  if (stream == Stream::kStdout || !wish.quoted) {
    return wish.shown ? Route::kInherit : Route::kDiscard;
  }
  return wish.shown ? Route::kPass : Route::kKeep;
}

}  // namespace ddprun
