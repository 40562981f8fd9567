#include "agent/proc/tcp_bytes.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace ddprun {
namespace {

// What a machine has more is not counted.
constexpr std::size_t kConnectionsCountedMax = 65'536;
constexpr unsigned kEstablishedState = 1;

// The head of the kernel's tcp_info, of which the C library's has less.
struct CountedBytes {
  std::array<char, 120> others;
  std::uint64_t acknowledged;
  std::uint64_t received;
};

}  // namespace

TcpBytes::TcpBytes(std::uint16_t except) {
  const int kernel =
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
  if (kernel < 0) return;
  if (ask(kernel, AF_INET, except)) static_cast<void>(ask(kernel, AF_INET6, except));
  ::close(kernel);
}

// The kernel fills each part of the answer when it is asked for: nothing is waited for.
bool TcpBytes::ask(int kernel, int family, std::uint16_t except) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.header.nlmsg_seq = static_cast<std::uint32_t>(family);
  question.request.sdiag_family = static_cast<std::uint8_t>(family);
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_ext = 1U << (INET_DIAG_INFO - 1U);
  question.request.idiag_states = 1U << kEstablishedState;
  if (::send(kernel, &question, sizeof(question), 0) != sizeof(question)) return false;
  alignas(nlmsghdr) std::array<char, 32 * 1024> answer;  // NOLINT: recv() fills it
  while (true) {
    const ssize_t received = ::recv(kernel, answer.data(), answer.size(), 0);
    if (received <= 0) return false;
    auto rest = static_cast<unsigned>(received);
    for (auto* header = reinterpret_cast<const nlmsghdr*>(answer.data()); NLMSG_OK(header, rest);
         header = NLMSG_NEXT(header, rest)) {
      if (header->nlmsg_type == NLMSG_DONE) return true;
      if (header->nlmsg_type == NLMSG_ERROR) return false;
      take(NLMSG_DATA(header), header->nlmsg_len - NLMSG_HDRLEN, except);
    }
  }
}

// inet_diag_msg and attributes; a kernel before 4.2 counts no bytes.
void TcpBytes::take(const void* message, std::size_t bytes, std::uint16_t except) {
  const auto* told = static_cast<const inet_diag_msg*>(message);
  if (bytes < sizeof(*told) || bytes_.size() >= kConnectionsCountedMax) return;
  if (ntohs(told->id.idiag_dport) == except || told->idiag_inode == 0) return;
  const auto* attribute = reinterpret_cast<const rtattr*>(told + 1);
  auto rest = static_cast<unsigned>(bytes - sizeof(*told));
  for (; RTA_OK(attribute, rest); attribute = RTA_NEXT(attribute, rest)) {
    if (attribute->rta_type != INET_DIAG_INFO) continue;
    CountedBytes counted{};
    std::memcpy(&counted, RTA_DATA(attribute),
                std::min<std::size_t>(RTA_PAYLOAD(attribute), sizeof(counted)));
    bytes_[told->idiag_inode] = counted.received + counted.acknowledged;
  }
}

std::uint64_t TcpBytes::of(pid_t process) const {
  if (bytes_.empty()) return 0;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(folder.c_str()), ::closedir);
  if (list == nullptr) return 0;
  constexpr std::string_view kSocketLink = "socket:[";
  std::uint64_t sum = 0;
  while (const dirent* item = ::readdir(list.get())) {
    std::array<char, 64> target{};
    if (::readlinkat(::dirfd(list.get()), item->d_name, target.data(), target.size() - 1) <= 0) {
      continue;
    }
    if (!std::string_view(target.data()).starts_with(kSocketLink)) continue;
    const auto found = bytes_.find(std::strtoull(target.data() + kSocketLink.size(), nullptr, 10));
    if (found != bytes_.end()) sum += found->second;
  }
  return sum;
}

}  // namespace ddprun
