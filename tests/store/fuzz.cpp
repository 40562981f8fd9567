// The libFuzzer target for the store's protocol (clang, DDPRUN_FUZZ):
//   build/clang/tests/store/fuzz_store -max_len=4096 tests/corpus/store
#include <cstddef>
#include <cstdint>

#include "tests/store/replay.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ddprun::store::replay({data, size});
  return 0;
}
