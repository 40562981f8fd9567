// The first bytes of a connection of the coordinator's port, and a request of HTTP in pieces: every
// request gets one answer, and one that is too long gets it before more of it is held.
#include <string>

#include "rendezvous/coordinator/arrivals.hpp"
#include "rendezvous/coordinator/http.hpp"
#include "tests/fuzz/target.hpp"

using namespace ddprun::coordinator;
using namespace ddprun::fuzz;

namespace {

void check_first_bytes(std::string_view bytes) {
  const Speaks decided = protocol_of(bytes);
  for (std::size_t cut = 0; cut < bytes.size() && cut < 8; ++cut) {
    const Speaks so_far = protocol_of(bytes.substr(0, cut));
    DDPRUN_ASSERT(so_far == Speaks::kUnknownYet || so_far == decided);
  }
}

void check_answer(const HttpAsk& ask) {
  const std::string answer =
      ask.code == 200 ? response_with(ask.page, "{}") : response_to_refused(ask.code);
  const std::string status = "HTTP/1.1 " + std::to_string(ask.code) + " ";
  DDPRUN_ASSERT(answer.starts_with(status));
  DDPRUN_ASSERT(head_of(answer).ends_with("\r\n\r\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = text_of(data, size);
  check_first_bytes(rest);
  std::string held;
  while (!rest.empty()) {
    held.append(take_piece(rest));
    const auto ask = read_request(held, "node-1");
    if (ask) {
      check_answer(*ask);
      return 0;
    }
    DDPRUN_ASSERT(held.size() <= ddprun::net::kHttpHeadBytesMax);
  }
  return 0;
}
