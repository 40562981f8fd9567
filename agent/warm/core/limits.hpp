// The limits of agent/warm; what happens beyond each is cold starts.
#pragma once

#include <chrono>
#include <cstddef>

namespace ddprun::warm {

// From the start of a template, or of the probe before it, to its first message.
inline constexpr std::chrono::seconds kHelloMax{10};
// For the imports.
inline constexpr std::chrono::minutes kImportMax{10};
// For the forks of the workers that wait.
inline constexpr std::chrono::seconds kForkMax{30};
// From the order to become a rank, or the answer of another one, to the answer; time in which a
// process was ready to run and got no processor does not count.
inline constexpr std::chrono::milliseconds kAnswerMax{500};
// It all counts after this.
inline constexpr std::chrono::seconds kAllAnswersMax{5};
// A look at the files of the modules that is older is no answer for a round.
inline constexpr std::chrono::seconds kLookMax{1};
// After all ranks run: until then the processors are theirs.
inline constexpr std::chrono::milliseconds kRefillAfter{250};
// Templates of one run: one that ended, or whose files changed, is replaced.
inline constexpr int kTemplatesMax = 5;
// What an interpreter can print before it imports the hook (unprivileged processes may have it).
inline constexpr int kEarlyBytes = 1 << 20;
// One message of a template; a longer one is malformed.
inline constexpr std::size_t kMessageBytesMax = 1024;
// Descriptors in one message (SCM_RIGHTS takes 253).
inline constexpr std::size_t kDescriptorsMax = 64;
// For processes to end at the end of the run.
inline constexpr std::chrono::seconds kEndMax{2};

}  // namespace ddprun::warm
