// ControlSocket: makes the control socket of this ddprun and removes it. A machine without a place
// for one is told so once, and the run is not affected. Thread rule: the io_context's thread; the
// file system is asked on `disk`. Ownership: the logger and the target outlive it.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <optional>
#include <string>

#include "agent/control/directory.hpp"
#include "agent/control/server.hpp"
#include "base/environment.hpp"
#include "net/disk_thread.hpp"

namespace ddprun {

class ControlSocket {
 public:
  ControlSocket(DiskThread disk, spdlog::logger& logger, control::Target& target)
      : disk_(std::move(disk)), logger_(logger), target_(target) {}
  /// As close().
  ~ControlSocket() { close(); }
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  /// Serves from a little later on. Further calls do nothing.
  void open(const Environment& environment);
  /// Tells the commands that wait for the end how the run ended here.
  void tell(const control::Outcome& outcome);
  /// Ends every connection and removes the file.
  void close();

 private:
  void serve(const Result<control::Listener>& listener);

  DiskThread disk_;
  spdlog::logger& logger_;
  control::Target& target_;
  bool opened_ = false;
  std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);
  std::string path_;
  std::optional<control::Server> server_;
};

}  // namespace ddprun
