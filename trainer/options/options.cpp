#include "trainer/options/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "trainer/error.hpp"
#include "trainer/limits.hpp"
#include "trainer/options/flags.hpp"

namespace ddprun::trainer {
namespace {

const char* const kAbout =
    "Trains ResNet-18 on CIFAR-10, one process per device, as a worker of a launcher that sets\n"
    "RANK and WORLD_SIZE, or as a single process if they are not set. Flags may be written\n"
    "with _ instead of -; the last occurrence of a flag wins.";

std::string first_name(const Flag& flag) {
  return flag.names.substr(0, flag.names.find(','));
}

std::vector<std::string> names_of(const Flag& flag) {
  std::vector<std::string> names;
  std::string_view rest = flag.names;
  for (auto comma = rest.find(','); comma != std::string_view::npos; comma = rest.find(',')) {
    names.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma + 1);
  }
  names.emplace_back(rest);
  return names;
}

const Flag* flag_named(const std::string& name) {
  for (const auto& flag : all_flags()) {
    const auto names = names_of(flag);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &flag;
  }
  return nullptr;
}

/// --batch_size=4 becomes --batch-size=4; a flag with an optional value gets its default.
std::vector<std::string> normalize(std::span<const std::string> arguments) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string argument = arguments[i];
    if (argument.starts_with("--")) {
      const auto name_end = argument.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(argument.size(), argument.find('=')));
      std::replace(argument.begin(), name_end, '_', '-');
    }
    result.push_back(argument);
    const Flag* flag = flag_named(argument);
    if (flag == nullptr) continue;
    const bool value_follows = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
    if (value_follows) {
      result.push_back(arguments[++i]);
    } else if (!flag->bare.empty()) {
      result.push_back(flag->bare);
    } else {
      throw UsageError(argument + " needs a value: " + flag->value);
    }
  }
  return result;
}

[[noreturn]] void refuse_extra(const std::string& extra) {
  const std::string name = extra.substr(0, extra.find('='));
  std::vector<std::string> candidates;
  for (const auto& flag : all_flags()) {
    for (auto& known : names_of(flag)) candidates.push_back(std::move(known));
  }
  const std::string near = nearest(name, candidates);
  throw UsageError("unknown argument " + name +
                   (near.empty() ? "; see --help" : "; did you mean " + near + "?"));
}

void check_together(const TrainerOptions& options, const OptionsEnvironment& environment) {
  if (options.nesterov == Switch::kOn && options.momentum == 0) {
    throw UsageError(
        "--momentum is 0, but Nesterov momentum requires a positive value; add --nesterov off");
  }
  const auto& schedule = options.schedule;
  if ((schedule.kind == ScheduleKind::kMultiStep) == schedule.milestones.empty()) {
    throw UsageError(
        "--milestones and --schedule multi-step require each other; give both or neither");
  }
  if (schedule.minimum > options.lr)
    throw UsageError("--lr-min is above --lr; give a smaller value");
  if (options.local_rank && environment.local_rank &&
      std::to_string(*options.local_rank) != *environment.local_rank) {
    throw UsageError("--local-rank is " + std::to_string(*options.local_rank) +
                     " but LOCAL_RANK is " + *environment.local_rank +
                     "; omit the flag, because the launcher sets the variable");
  }
}

}  // namespace

const std::vector<Flag>& all_flags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all;
    for (const auto& part : {optimizer_flags(), schedule_flags(), image_flags(), machine_flags()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return flags;
}

std::variant<TrainerOptions, HelpText> parse_options(std::span<const std::string> arguments,
                                                     const OptionsEnvironment& environment) {
  CLI::App app(kAbout, "resnet18_cifar10");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_help_flag("-h,--help", "this text");
  app.allow_extras();
  const auto& flags = all_flags();
  std::vector<std::string> texts(flags.size());
  std::vector<CLI::Option*> given;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    auto* option = app.add_option(flags[i].names, texts[i], flags[i].help);
    given.push_back(option->type_name(flags[i].value)->group(flags[i].group));
  }
  std::vector<std::string> reversed = normalize(arguments);
  std::reverse(reversed.begin(), reversed.end());  // the order that CLI11 expects
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return HelpText{app.help()};
  } catch (const CLI::Error& error) {
    throw UsageError(std::string(error.what()) + "; see --help");
  }
  if (!app.remaining().empty()) refuse_extra(app.remaining().front());
  TrainerOptions options;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (given[i]->count() > 0) flags[i].apply(options, {first_name(flags[i]), texts[i]});
  }
  check_together(options, environment);
  return options;
}

std::uint64_t total_steps(const TrainerOptions& options, std::uint64_t batches_per_epoch) {
  if (options.steps) return *options.steps;
  const auto steps = static_cast<std::uint64_t>(options.epochs) * batches_per_epoch;
  if (steps > kStepsMax) {
    throw UsageError("--epochs " + std::to_string(options.epochs) + " are " +
                     std::to_string(steps) + " steps, the limit is " + std::to_string(kStepsMax) +
                     "; give fewer epochs");
  }
  return steps;
}

ScheduleOptions schedule_for(const TrainerOptions& options, std::uint64_t batches_per_epoch) {
  const ScheduleChoice& choice = options.schedule;
  const double usual = choice.kind == ScheduleKind::kWarmupLinear ? 0.2
                       : choice.kind == ScheduleKind::kOneCycle   ? 0.3
                                                                  : 0.0;
  ScheduleOptions schedule;
  schedule.kind = choice.kind;
  schedule.base = options.lr;
  schedule.warmup_fraction = choice.warmup.value_or(usual);
  for (const double epoch : choice.milestones) {
    schedule.milestones.push_back(
        static_cast<std::uint64_t>(std::llround(epoch * static_cast<double>(batches_per_epoch))));
  }
  schedule.gamma = choice.gamma;
  schedule.minimum = choice.minimum;
  schedule.div_factor = choice.div_factor;
  schedule.final_div_factor = choice.final_div_factor;
  return schedule;
}

}  // namespace ddprun::trainer
