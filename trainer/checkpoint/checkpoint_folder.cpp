#include "trainer/checkpoint/checkpoint_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "trainer/checkpoint/digest.hpp"
#include "trainer/error.hpp"
#include "trainer/files/atomic_file.hpp"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDigestKey = "ddprun.digest";

void add_text(Digest& digest, std::string_view text) {
  digest.update(std::to_string(text.size())).update(":").update(text);
}

/// Covers everything except the digest itself: names, types, shapes, bytes, metadata.
std::string digest_of(const std::vector<const TensorView*>& tensors, const Metadata& metadata) {
  Digest digest;
  for (const auto& [key, text] : metadata) {
    if (key == kDigestKey) continue;
    add_text(digest, key);
    add_text(digest, text);
  }
  for (const auto* tensor : tensors) {
    add_text(digest, tensor->name);
    add_text(digest, dtype_name(tensor->type));
    for (const auto size : tensor->shape) add_text(digest, std::to_string(size));
    digest.update(tensor->bytes);
  }
  return hex_text(digest.value());
}

std::string stem_of(std::string name) {
  for (const std::string_view extension : {".safetensors", ".pth", ".pt", ".bin"}) {
    if (name.size() > extension.size() && name.ends_with(extension)) {
      name.resize(name.size() - extension.size());
      break;
    }
  }
  return name;
}

bool there(const fs::path& path) {
  std::error_code ignored;  // an inaccessible file counts as missing
  return fs::exists(path, ignored);
}

/// True for an undamaged checkpoint of the same run that is not ahead of it: a valid fallback.
bool is_earlier_point(const fs::path& path, const TrainingState& now) {
  if (!there(path)) return false;
  try {
    const TrainingState saved = read_checkpoint(path).state;
    check_same_run(saved, now, path.string());
    return saved.step <= now.step;
  } catch (const TrainerError&) {
    return false;  // find_last() reports the reason
  }
}

/// Gives the file at `from` a second name; replaces `to` atomically.
void link_over(const fs::path& from, const fs::path& to) {
  const fs::path temporary =
      to.parent_path() / ("." + to.filename().string() + ".tmp-" + std::to_string(::getpid()));
  ::unlink(temporary.c_str());
  const bool linked = ::link(from.c_str(), temporary.c_str()) == 0;
  // Without hard links (some network file systems), rename the file. If we are killed before the
  // new file is in place, the previous one still exists under its own name.
  const int renamed = ::rename(linked ? temporary.c_str() : from.c_str(), to.c_str());
  const int error = errno;
  // rename() does nothing if both names already refer to the same file, as after a kill at this
  // point.
  ::unlink(temporary.c_str());
  if (renamed != 0) {
    throw TrainerError("cannot keep " + from.string() + " as " + to.string() + ": " +
                       std::generic_category().message(error) + "; choose another --model-dir");
  }
}

}  // namespace

Checkpoint read_checkpoint(const fs::path& path) {
  SafetensorsFile file(path);
  std::vector<const TensorView*> tensors;
  for (const auto& tensor : file.tensors()) tensors.push_back(&tensor);
  const auto digest = file.metadata().find(kDigestKey);
  if (digest == file.metadata().end()) {
    throw TrainerError(path.string() + " is not a checkpoint of this trainer (it has no " +
                       kDigestKey + "); use another one");
  }
  if (digest->second != digest_of(tensors, file.metadata())) {
    throw TrainerError(path.string() +
                       " is damaged: its digest does not match; use another checkpoint");
  }
  TrainingState state = state_from(file.metadata(), path.string());
  return {std::move(file), std::move(state)};
}

void write_checkpoint(const fs::path& path, std::span<const TensorView> tensors,
                      const TrainingState& state) {
  Metadata metadata = to_metadata(state);
  metadata[kDigestKey] = digest_of(layout_safetensors(tensors, metadata).order, metadata);
  write_safetensors(path, tensors, metadata);
}

CheckpointFolder::CheckpointFolder(fs::path folder, const std::string& name)
    : folder_(std::move(folder)), stem_(stem_of(name)) {}

void CheckpointFolder::save_last(std::span<const TensorView> tensors, const TrainingState& state) {
  make_folder(folder_);
  // What this process wrote is valid. A file of another process is checked once: neither a damaged
  // file nor one of another run may replace, or remain, the fallback checkpoint.
  if (last_is_ours_ || is_earlier_point(last(), state)) {
    link_over(last(), previous());
  } else if (there(previous()) && !is_earlier_point(previous(), state)) {
    ::unlink(previous().c_str());
  }
  write_checkpoint(last(), tensors, state);
  last_is_ours_ = true;
}

void CheckpointFolder::save_best(std::span<const TensorView> tensors,
                                 const TrainingState& state) const {
  make_folder(folder_);
  write_checkpoint(best(), tensors, state);
}

bool CheckpointFolder::has_best(const TrainingState& state) const {
  if (!there(best())) return false;
  try {
    return read_checkpoint(best()).state.step == state.best_step;
  } catch (const TrainerError&) {
    return false;
  }
}

Found CheckpointFolder::find_last() const {
  Found found;
  for (const fs::path& path : {last(), previous(), best()}) {
    if (!there(path)) continue;
    try {
      found.checkpoint = read_checkpoint(path);
      return found;
    } catch (const TrainerError& error) {
      found.passed_over.emplace_back(error.what());
    }
  }
  if (!found.passed_over.empty()) {
    throw TrainerError("no checkpoint of " + folder_.string() + " can be read (" +
                       found.passed_over.front() +
                       "); move them away, or pass --resume none to start a new run");
  }
  return found;
}

fs::path CheckpointFolder::last() const {
  return folder_ / (stem_ + ".last.safetensors");
}
fs::path CheckpointFolder::previous() const {
  return folder_ / (stem_ + ".previous.safetensors");
}
fs::path CheckpointFolder::best() const {
  return folder_ / (stem_ + ".best.safetensors");
}

void CheckpointFolder::clean() const noexcept {
  remove_abandoned_temporaries(last());
  remove_abandoned_temporaries(previous());
  remove_abandoned_temporaries(best());
}

}  // namespace ddprun::trainer
