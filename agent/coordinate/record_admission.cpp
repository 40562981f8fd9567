#include "agent/coordinate/record_admission.hpp"

#include "rendezvous/round/admission.hpp"

namespace ddprun {

std::optional<std::string> refusal_of_record(const protocol::Hello& hello,
                                             const RunRecord& record) {
  const auto refused = round::refuse_record(hello, record);
  if (!refused) return std::nullopt;
  return refused->sentence;
}

}  // namespace ddprun
