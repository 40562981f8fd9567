// What a command writes. Thread rule: the launcher's thread.
#pragma once

#include <string>

namespace ddprun::commands {

/// To standard output. Returns the exit code.
int print(const std::string& text);
/// A note to standard error.
void note(const std::string& sentence);
/// An error message to standard error. Returns kCommandFailed.
int fail(const std::string& sentence, const std::string& code = "CONTROL");
/// The same for arguments that are wrong. Returns 2.
int misuse(const std::string& sentence);

}  // namespace ddprun::commands
