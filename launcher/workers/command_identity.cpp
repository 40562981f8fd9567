#include "launcher/workers/config.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/limits.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace ddprun {
namespace {

constexpr std::string_view kPython = "python";

/// Without the folders before it: "/data/run-1/" is "run-1".
std::string last_part(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (path == "/" || slash == std::string_view::npos) return std::string(path);
  return std::string(path.substr(slash + 1));
}

bool is_python(std::string_view program) {
  return program.starts_with(kPython) &&
         program.find_first_not_of("0123456789.", kPython.size()) == std::string_view::npos;
}

/// What it does is in the script, the module or the text that it is given.
bool is_interpreter(std::string_view program) {
  constexpr std::array<std::string_view, 8> kShells{"sh",  "bash", "dash",  "zsh",
                                                    "env", "node", "julia", "Rscript"};
  return is_python(program) || std::find(kShells.begin(), kShells.end(), program) != kShells.end();
}

/// Of "--node_rank" and "--node-rank": names whose value differs from node to node.
bool names_own_value(std::string_view option) {
  constexpr std::array<std::string_view, 5> kNames{"node-rank", "machine-rank", "local-addr",
                                                   "host", "hostname"};
  if (!option.starts_with('-')) return false;
  while (option.starts_with('-')) option.remove_prefix(1);
  std::string name(option);
  std::replace(name.begin(), name.end(), '_', '-');
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string value_without_place(const std::string& value, const std::string& host_name) {
  if (!host_name.empty() && value == host_name) return "*";
  return value.starts_with('/') ? last_part(value) : value;
}

/// A word and, where it has the form NAME=VALUE, the value alone.
std::string argument(const std::string& word, const std::string& host_name) {
  const auto equals = word.find('=');
  if (equals == std::string::npos) return value_without_place(word, host_name);
  const std::string name = word.substr(0, equals);
  if (names_own_value(name)) return name + "=*";
  return name + "=" + value_without_place(word.substr(equals + 1), host_name);
}

/// The word that names the script in "python -u script ..."; none with -m and -c.
std::size_t script_place(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" || command[i] == "-c") break;
    if (!command[i].starts_with('-')) return i;
  }
  return command.size();
}

std::vector<std::string> compared_words(const std::vector<std::string>& command,
                                        const std::string& host_name) {
  std::vector<std::string> words;
  std::string program = last_part(command.front());
  const bool python = is_python(program);
  const std::size_t script = python ? script_place(command) : 0;
  words.push_back(python ? std::string(kPython) : std::move(program));
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (i < script && command[i] == "-u") continue;  // added by the launcher
    if (i == script) {
      words.push_back(last_part(command[i]));
    } else {
      words.push_back(names_own_value(command[i - 1]) ? "*" : argument(command[i], host_name));
    }
  }
  return words;
}

/// The words that say which program it is; the others are its arguments.
std::size_t count_program_words(const std::vector<std::string>& words) {
  std::size_t count = 1;
  if (!is_interpreter(words.front())) return count;
  while (count < words.size() && words[count].starts_with('-')) {
    const bool is_last = words[count] == "-m" || words[count] == "-c";
    ++count;
    if (is_last) break;
  }
  return std::min(count + 1, words.size());
}

/// FNV-1a over the words and their ends.
std::uint64_t digest(std::span<const std::string> words) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto take = [&hash](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  };
  for (const std::string& word : words) {
    for (const char c : word) take(c);
    take('\0');
  }
  return hash;
}

std::string hexadecimal(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(number >> shift) & 0xFU];
  return text;
}

/// For users: words with blanks are quoted.
std::string readable(const std::vector<std::string>& words) {
  const bool bare_python = words.size() == 1;
  std::string text;
  for (std::size_t i = words.front() == kPython && !bare_python ? 1 : 0; i < words.size(); ++i) {
    const bool quoted = words[i].empty() || words[i].find_first_of(" \t\n'\"") < words[i].size();
    text += (text.empty() ? "" : " ") + (quoted ? "'" + words[i] + "'" : words[i]);
  }
  return clean_utf8(printable(text), kCommandBytesMax);
}

}  // namespace

CommandIdentity identify_command(const std::vector<std::string>& command,
                                 const std::string& host_name) {
  const std::vector<std::string> words = compared_words(command, host_name);
  const auto program = std::span(words).first(count_program_words(words));
  return {hexadecimal(digest(words)), hexadecimal(digest(program)), readable(words)};
}

}  // namespace ddprun
