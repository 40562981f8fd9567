# find_package(ddprun): target ddprun::worker, what a training program may know of its launcher.
include(${CMAKE_CURRENT_LIST_DIR}/ddprunTargets.cmake)

# It is written in C++: a project without that language does not link its runtime by itself.
get_property(ddprun_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT CXX IN_LIST ddprun_languages)
  set_property(TARGET ddprun::worker APPEND PROPERTY INTERFACE_LINK_LIBRARIES stdc++)
endif()
unset(ddprun_languages)
