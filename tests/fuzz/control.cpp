// The control socket: a request round-trips, and every refusal is one line of JSON.
#include <boost/json/parse.hpp>

#include "agent/control/request.hpp"
#include "tests/fuzz/target.hpp"

using namespace ddprun::control;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = ddprun::fuzz::text_of(data, size);
  const auto request = parse_request(line);
  if (!request) {
    const std::string answer = encode_refused(request.error().sentence);
    DDPRUN_ASSERT(answer.find('\n') == answer.size() - 1);
    DDPRUN_ASSERT(answer.size() <= 2 * kRequestBytesMax);
    boost::system::error_code failed;
    DDPRUN_ASSERT(boost::json::parse(answer, failed).is_object() && !failed);
    return 0;
  }
  std::string text = encode(*request);
  DDPRUN_ASSERT(text.back() == '\n');
  text.pop_back();
  const auto again = parse_request(text);
  DDPRUN_ASSERT(again && again->command == request->command && again->signal == request->signal);
  return 0;
}
