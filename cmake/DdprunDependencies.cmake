# Third-party packages, as imported (hence SYSTEM) targets. None needs Torch, CUDA or Python.
find_package(Threads REQUIRED)
set(Boost_USE_STATIC_LIBS ON)  # fewer shared libraries to load: a launcher starts in milliseconds
find_package(Boost 1.81 REQUIRED CONFIG COMPONENTS json)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
# OpenSSL: its headers suffice; net/openssl.hpp loads its libraries.
find_package(OpenSSL 3 REQUIRED)
add_library(ddprun_openssl_headers INTERFACE)
target_include_directories(ddprun_openssl_headers SYSTEM INTERFACE ${OPENSSL_INCLUDE_DIR})
# toml++: its headers suffice; its CMake package is that of a shared library.
find_path(DDPRUN_TOML_HEADERS toml++/toml.h REQUIRED)
if(BUILD_TESTING)
  find_package(Catch2 REQUIRED)
  include(Catch)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
