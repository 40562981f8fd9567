# Third-party packages, as imported (hence SYSTEM) targets. None needs Torch, CUDA or Python.
find_package(Threads REQUIRED)
set(Boost_USE_STATIC_LIBS ON)  # fewer shared libraries to load: a launcher starts in milliseconds
find_package(Boost 1.81 REQUIRED CONFIG COMPONENTS filesystem json)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
# spdlog from its headers: loading it and fmt as shared libraries would cost a quarter of a launch.
add_library(ddprun_log INTERFACE)
target_include_directories(ddprun_log SYSTEM INTERFACE
  $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(ddprun_log INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(ddprun_log INTERFACE fmt::fmt-header-only Threads::Threads)
find_package(CLI11 REQUIRED)
if(BUILD_TESTING)
  find_package(Catch2 REQUIRED)
  include(Catch)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
