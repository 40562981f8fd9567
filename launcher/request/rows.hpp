// What the rows of the option table have in common (launcher/request/*_options.cpp). A row is all
// of an option but its test: its texts, what its value becomes in the Request, and what it yields
// to.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "launcher/options/values.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

using Id = OptionId;
using Value = OptionValue;
using Variable = OptionVariable;

/// The value of an option, with its origin, for the function that reads it.
struct Given : Origin {
  const Settings& settings;
  const Environment& environment;
  [[nodiscard]] const Origin& origin() const { return *this; }
};

/// A file's rows are taken in its order: a row may read what those above it left in the request.
[[nodiscard]] std::span<const OptionSpec> rendezvous_options();
[[nodiscard]] std::span<const OptionSpec> program_options();
[[nodiscard]] std::span<const OptionSpec> restart_options();
[[nodiscard]] std::span<const OptionSpec> output_options();
[[nodiscard]] std::span<const OptionSpec> other_options();

[[nodiscard]] inline Result<std::string> as_text(const Given& given) {
  return given.text;
}
[[nodiscard]] inline Result<bool> as_flag(const Given& given) {
  return given.settings.on(given.id);
}
[[nodiscard]] inline Result<std::int64_t> as_integer(const Given& given) {
  return given.settings.integer(given.id);
}

template <class Field, class Value>
void store(Field& field, const Given& /*given*/, Value value) {
  field = std::move(value);
}
template <class Field>
void store(Setting<Field>& field, const Given& given, Field value) {
  field = {given.origin(), std::move(value)};
}

/// Reads the value into the member to which `members` lead from the request; a Setting gets its
/// origin, too.
template <auto read, auto... members>
Result<void> put(const Given& given, Request& request) {
  auto value = read(given);
  if (!value) return value.error();
  store((request.*....*members), given, std::move(*value));
  return {};
}

}  // namespace ddprun
