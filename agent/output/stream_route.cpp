#include "agent/output/stream_route.hpp"

namespace ddprun {

Route route_of(Stream stream, const StreamWish& wish) {
  const Route to_file = wish.limited ? Route::kLog : Route::kFile;
  if (wish.files && wish.teed) return wish.shown ? Route::kTee : to_file;
  if (wish.files && wish.redirected) return to_file;
  using Show = StreamWish::Show;
  const bool kept = wish.files && wish.kept;
  const bool inherits = (stream == Stream::kStdout && !kept) || !wish.quoted;
  if (!wish.shown && kept) return to_file;
  if (!wish.shown) return inherits ? Route::kDiscard : Route::kKeep;
  switch (wish.show) {
    case Show::kAsItIs:
      break;
    case Show::kPassed:
      return Route::kPass;
    case Show::kLabelled:
      return Route::kLabel;
    case Show::kInFile:
      return wish.files ? Route::kLog : Route::kLabel;
  }
  return inherits ? Route::kInherit : Route::kPass;
}

}  // namespace ddprun
