#include "trainer/data/sample_log.hpp"

#include <string>

namespace ddprun::trainer {

SampleDigest& SampleDigest::operator+=(const SampleDigest& other) {
  count += other.count;
  sum += other.sum;
  return *this;
}

SampleDigest digest_of(std::span<const std::uint32_t> ids) {
  SampleDigest digest{ids.size(), 0};
  for (const std::uint32_t id : ids) digest.sum += mix(std::uint64_t{id} + 1);
  return digest;
}

SampleLog::SampleLog(const std::filesystem::path& file) : file_(file) {
  if (file_.empty()) file_.append("step,epoch,batch,rank,world,count,digest\n");
}

void SampleLog::record(std::uint64_t step, const Place& place, const RankBatch& batch) {
  const SampleDigest digest = digest_of(batch.ids.first(batch.counted));
  std::string line;
  for (const std::uint64_t value :
       {step, batch.epoch, batch.batch, static_cast<std::uint64_t>(place.rank),
        static_cast<std::uint64_t>(place.world), digest.count, digest.sum}) {
    line += std::to_string(value) + ",";
  }
  line.back() = '\n';
  file_.append(line);
}

void SampleLog::record_all(const LoggedStep& step, const Position& at) {
  std::string line;
  for (const std::uint64_t value : {step.step, at.epoch, at.batch})
    line += std::to_string(value) + ",";
  line += "all," + std::to_string(at.world) + "," + std::to_string(step.samples.count) + "," +
          std::to_string(step.samples.sum) + "\n";
  file_.append(line);
}

}  // namespace ddprun::trainer
