// A connection to the store of a round, in the c10d wire protocol: as much of it as agree() needs.
// Every call has a deadline. Thread rule: the caller's thread. Ownership: owns the socket. Errors:
// ETIMEDOUT or ENOTCONN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ddprun::worker_link {

class StoreClient {
 public:
  /// `deadline` of monotonic_now().
  explicit StoreClient(std::int64_t deadline) : deadline_(deadline) {}
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  [[nodiscard]] int connect(const std::string& host, std::uint16_t port);
  /// Sets a key that is not there, and returns its value; a value that is there stays.
  [[nodiscard]] int set_first(const std::string& key, std::string& value);

 private:
  [[nodiscard]] int try_address(const void* address, std::size_t size, int family);
  [[nodiscard]] int wait_for(short events) const;
  [[nodiscard]] int send_all(const std::string& bytes);
  [[nodiscard]] int receive_all(void* bytes, std::size_t size);

  std::int64_t deadline_;
  int socket_ = -1;
};

}  // namespace ddprun::worker_link
