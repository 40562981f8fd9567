// The program that checkpoint_crash_test.sh kills and runs on a full disk.
//   probe save DIR BYTES COUNT     resumes and saves COUNT more; prints "saving N", then "saved N"
//   probe beside DIR BYTES COUNT   the same in the background
//   probe find DIR                 the step to resume from; 0: nothing was saved
#include <cstdio>
#include <string>

#include "trainer/checkpoint/background_write.hpp"
#include "trainer/checkpoint/checkpoint_folder.hpp"
#include "trainer/error.hpp"

using namespace ddprun::trainer;

namespace {

std::uint64_t found_step(const CheckpointFolder& folder) {
  const Found found = folder.find_last();
  return found.checkpoint ? found.checkpoint->state.step : 0;
}

void say(const char* what, std::uint64_t step) {
  std::printf("%s %llu\n", what, static_cast<unsigned long long>(step));
  std::fflush(stdout);
}

using Write = void (*)(const std::function<void()>& job);

void write_now(const std::function<void()>& job) {
  job();
}

void write_beside(const std::function<void()>& job) {
  BackgroundWrite write;
  write.start(job);
  const auto result = write.wait();
  if (!result->problem.empty()) throw TrainerError(result->problem);
}

void save(CheckpointFolder& folder, std::size_t bytes, std::uint64_t count, Write write) {
  folder.clean();
  const std::uint64_t first = found_step(folder) + 1;
  for (std::uint64_t step = first; step < first + count; ++step) {
    const std::vector<std::byte> data(bytes, static_cast<std::byte>(step));
    const TensorView view{"weight", DType::kU8, {static_cast<std::int64_t>(bytes)}, data};
    TrainingState state;
    state.step = step;
    say("saving", step);
    write([&] { folder.save_last({&view, 1}, state); });
    say("saved", step);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    CheckpointFolder folder(arguments.at(1), "model");
    const auto& what = arguments.at(0);
    if (what == "find") {
      say("found", found_step(folder));
    } else {
      const auto write = what == "beside" ? write_beside : write_now;
      save(folder, std::stoull(arguments.at(2)), std::stoull(arguments.at(3)), write);
    }
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
