# find_package(ddprun): target ddprun::worker, what a training program may know of its launcher. It
# is written in C++: a C program that links it needs CXX among its project's languages.
include(${CMAKE_CURRENT_LIST_DIR}/ddprunTargets.cmake)
