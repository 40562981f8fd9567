#include "launcher/machine/machine.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <memory>
#include <optional>
#include <string_view>

#include "agent/devices/devices.hpp"
#include "agent/devices/level_zero.hpp"
#include "agent/proc/cgroup.hpp"
#include "base/address.hpp"
#include "base/descriptor.hpp"
#include "base/random_uuid.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {
namespace {

/// The first bytes of a file; empty if it cannot be read, for example a directory.
std::string first_bytes(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 256> bytes{};
  const ssize_t count = file.number() < 0 ? -1 : ::read(file.number(), bytes.data(), bytes.size());
  return count <= 0 ? "" : std::string(bytes.data(), static_cast<std::size_t>(count));
}

/// "#!/usr/bin/env python3", "#! /opt/venv/bin/python -u": the last path component of a word starts
/// with "python".
bool names_python(std::string_view first_line) {
  first_line = first_line.substr(0, first_line.find('\n'));
  while (!first_line.empty()) {
    const auto blank = first_line.find_first_of(" \t");
    std::string_view word = first_line.substr(0, blank);
    if (const auto slash = word.rfind('/'); slash != std::string_view::npos) {
      word.remove_prefix(slash + 1);
    }
    if (word.starts_with("python")) return true;
    if (blank == std::string_view::npos) return false;
    first_line.remove_prefix(blank + 1);
  }
  return false;
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Null if it does not resolve.
AddressList resolve_here(const std::string& host) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  if (is_address_literal(host)) wanted.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), "0", &wanted, &found) != 0) found = nullptr;
  return AddressList(found, &::freeaddrinfo);
}

/// The kernel allows binding only to addresses of this machine. A datagram socket, because recently
/// closed connections of a busy machine do not use up its ports.
bool is_own(const addrinfo& address) {
  const Descriptor socket(::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket.number() >= 0 && ::bind(socket.number(), address.ai_addr, address.ai_addrlen) == 0;
}

std::optional<std::string> literal_of(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  const int failure =
      ::getnameinfo(address.ai_addr, address.ai_addrlen, text.data(),
                    static_cast<socklen_t>(text.size()), nullptr, 0, NI_NUMERICHOST);
  if (failure != 0) return std::nullopt;
  return text.data();
}

/// Literals of the addresses that are not of this machine, each once.
std::vector<std::string> other_literals(const addrinfo* addresses) {
  constexpr std::size_t kOthersMax = 64;
  std::vector<std::string> others;
  for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
    if (is_own(*address) || others.size() == kOthersMax) continue;
    auto literal = literal_of(*address);
    const bool is_new =
        literal && std::find(others.begin(), others.end(), *literal) == others.end();
    if (is_new) others.push_back(std::move(*literal));
  }
  return others;
}

/// The first own address; an address that other machines can reach precedes loopback.
std::optional<std::string> own_literal(const addrinfo* addresses) {
  std::optional<std::string> loopback;
  for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
    if (!is_own(*address)) continue;
    auto literal = literal_of(*address);
    if (!literal || !is_loopback_literal(*literal)) return literal;
    if (!loopback) loopback = std::move(literal);
  }
  return loopback;
}

std::optional<std::string> cuda_visible_devices(const Environment& environment) {
  const auto found = environment.find("CUDA_VISIBLE_DEVICES");
  if (found == environment.end()) return std::nullopt;
  return found->second;
}

DeviceSources sources_of(const Environment& environment) {
  DeviceSources sources;
  sources.nvml = value_or(environment, "DDPRUN_NVML", sources.nvml);
  return sources;
}

}  // namespace

std::string ThisMachine::working_directory() const {
  std::array<char, PATH_MAX> path{};
  // A removed working directory has no name; "." is then the best answer.
  return ::getcwd(path.data(), path.size()) == nullptr ? "." : path.data();
}

FileKind ThisMachine::inspect(const std::string& path) const {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return FileKind::kMissing;
  if (!S_ISREG(status.st_mode)) return FileKind::kOther;
  const std::string start = first_bytes(path);
  if (start.starts_with("#!") && names_python(std::string_view(start).substr(2))) {
    return FileKind::kPythonScript;
  }
  const bool runnable = start.starts_with("#!") || start.starts_with(
                                                       "\x7F"
                                                       "ELF");
  if (!runnable) return FileKind::kOther;
  return ::access(path.c_str(), X_OK) == 0 ? FileKind::kProgram : FileKind::kNotExecutable;
}

std::string ThisMachine::program_folder() const {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view program(path.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto slash = program.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(program.substr(0, slash));
}

bool ThisMachine::is_plain_file(const std::string& path) const {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

int ThisMachine::count_cpus() const {
  return ddprun::count_cpus();
}

int ThisMachine::count_gpus() const {
  return ddprun::count_gpus(cuda_visible_devices(environment_), sources_of(environment_));
}

std::vector<GpuDevice> ThisMachine::choosable_gpus() const {
  return ddprun::choosable_gpus(cuda_visible_devices(environment_), sources_of(environment_));
}

std::optional<double> ThisMachine::cpu_quota() const {
  return ddprun::cpu_quota();
}

Result<std::vector<std::string>> ThisMachine::xpus() const {
  constexpr const char* kSelector = "ONEAPI_DEVICE_SELECTOR";
  const std::vector<std::string> all = level_zero_gpus();
  const std::string selector = value_or(environment_, kSelector, "");
  const auto positions = selected_xpus(selector, static_cast<int>(all.size()));
  if (!positions) {
    return Error{ErrorKind::kUsage,
                 std::string(kSelector) + "=" + selector + " is not of the form level_zero:0,1"};
  }
  std::vector<std::string> visible;
  for (const int position : *positions) visible.push_back(all[static_cast<std::size_t>(position)]);
  return visible;
}

Result<std::vector<CpuSet>> ThisMachine::numa_cpus(NumaMode mode,
                                                   const std::vector<std::string>& devices,
                                                   int workers) const {
  NumaQuestion question{mode, devices, allowed_cpus()};
  if (question.devices.empty()) {
    question.devices =
        visible_gpu_addresses(cuda_visible_devices(environment_), sources_of(environment_));
  }
  if (question.devices.empty()) {
    auto intels = xpus();
    if (!intels) return intels.error();
    question.devices = std::move(*intels);
  }
  return cpus_near_devices(question, workers);
}

Whereabouts ThisMachine::locate(const std::string& host) const {
  using Place = Whereabouts::Place;
  const AddressList addresses = resolve_here(host == "localhost" ? kLoopbackV4 : host);
  if (addresses == nullptr) return {Place::kUnknown, ""};
  if (auto literal = own_literal(addresses.get())) {
    return {Place::kHere, *literal, other_literals(addresses.get())};
  }
  if (host == "localhost") return {Place::kHere, kLoopbackV6};
  return {Place::kElsewhere, ""};
}

Result<std::string> ThisMachine::agreed_line(const std::string& path, const std::string& key,
                                             const std::string& line, Agree agree) const {
  return agree_on_line(path, key, line, agree);
}

Result<SharedSecret> ThisMachine::secret_in(const std::string& path,
                                            const std::string& shown) const {
  const bool is_read = path == kSecretOnStdin && user_.secret_line;
  auto secret = is_read ? *user_.secret_line : read_secret(path, shown);
  if (!secret) return secret;
  return open_credential(std::move(*secret), shown);
}

Result<SharedSecret> ThisMachine::secret_of_variable() const {
  return open_credential(user_.secret, kSecretVariable);
}

Result<SharedSecret> ThisMachine::secret_at_home() const {
  return read_home_secret(environment_);
}

std::string ThisMachine::host_name() const {
  std::array<char, HOST_NAME_MAX + 1> name{};
  const int failure = ::gethostname(name.data(), name.size() - 1);
  return failure == 0 ? name.data() : "";
}

UserProcess this_process() {
  if (::getsid(0) == ::getpid()) return {::getpid(), false};  // the leader is ddprun, not a shell
  const Descriptor terminal(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  return {::getpid(), terminal.number() >= 0};
}

std::string ThisMachine::random_id() const {
  return random_uuid();
}

}  // namespace ddprun
