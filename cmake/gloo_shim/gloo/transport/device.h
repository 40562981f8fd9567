// Stand-in for the Gloo headers that PyPI's torch wheel leaves out although c10d's
// ProcessGroupGloo.hpp includes them. Everything here is only handled through pointers; the
// definitions are in libtorch_cpu.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace transport
}  // namespace gloo
