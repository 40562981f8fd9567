# Installed: the two programs, the worker library with its headers, and a CMake package `ddprun`.
