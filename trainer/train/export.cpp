#include "trainer/train/export.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <string>
#include <vector>

#include "trainer/files/atomic_file.hpp"

namespace ddprun::trainer {

namespace {

struct Pickled {
  std::string text;                 // the pickle, which refers to tensors by index
  std::vector<at::Tensor> tensors;  // by index
};

Pickled pickle(const NamedTensors& named) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  for (const auto& item : named) {
    // Each tensor needs its own storage: the pickle stores whole storages, of which a view is only
    // a part.
    dict.insert(item.name, item.tensor.detach().cpu().clone(at::MemoryFormat::Contiguous));
  }
  Pickled result;
  std::size_t number = 0;
  // Without tags the pickle contains plain Python types only, as torch.load's safe mode requires.
  torch::jit::Pickler pickler(
      [&](const char* bytes, std::size_t size) { result.text.append(bytes, size); }, nullptr,
      nullptr, nullptr, [&](const at::Tensor&) { return std::to_string(number++); },
      /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(dict);
  pickler.stop();
  result.tensors = pickler.tensorData();
  return result;
}

}  // namespace

void export_state_dict(const std::filesystem::path& path, const NamedTensors& tensors) {
  const auto pickled = pickle(tensors);
  std::string archive;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, std::size_t size) {
    archive.append(static_cast<const char*>(bytes), size);
    return size;
  });
  writer.writeRecord("data.pkl", pickled.text.data(), pickled.text.size());
  for (std::size_t i = 0; i < pickled.tensors.size(); ++i) {
    const auto& tensor = pickled.tensors[i];
    writer.writeRecord("data/" + std::to_string(i), tensor.const_data_ptr(), tensor.nbytes());
  }
  writer.writeEndOfFile();
  if (path.has_parent_path()) make_folder(path.parent_path());
  remove_abandoned_temporaries(path);
  write_file_atomically(path, {std::as_bytes(std::span(archive))});
}

}  // namespace ddprun::trainer
