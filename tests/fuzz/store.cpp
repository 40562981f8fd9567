// The protocol of the store: several connections in pieces, against one store with small limits.
#include "tests/fuzz/target.hpp"
#include "tests/store/replay.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ddprun::store::replay({data, size});
  return 0;
}
