# Installed: the programs, the Python module, and as component "development" the worker library,
# its headers, a CMake package `ddprun` that offers ddprun::worker, and ddprun.pc for other build
# systems. tests/install builds projects against an installed tree.
include(CMakePackageConfigHelpers)
set(DDPRUN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ddprun)

# A training program gets neither our warnings nor our include root: only the headers it may use.
set_target_properties(ddprun_worker PROPERTIES EXPORT_NAME worker
  INTERFACE_LINK_LIBRARIES $<BUILD_INTERFACE:ddprun_settings>)
target_include_directories(ddprun_worker INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS ddprun ddprun-rdzvd RUNTIME)
if(TARGET ddprun-stacks)
  install(TARGETS ddprun-stacks RUNTIME)
endif()
install(TARGETS ddprun_worker EXPORT ddprunTargets ARCHIVE COMPONENT development)
set(DDPRUN_PYTHON_DIR lib/ddprun/python CACHE STRING
  "Folder of the Python module, for PYTHONPATH")
install(TARGETS ddprun_worker_shared LIBRARY DESTINATION ${DDPRUN_PYTHON_DIR}/ddprun)
install(DIRECTORY worker_api/python/ddprun DESTINATION ${DDPRUN_PYTHON_DIR}
  FILES_MATCHING PATTERN "*.py")
install(FILES worker_api/worker.h worker_api/worker.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ddprun COMPONENT development)
install(EXPORT ddprunTargets NAMESPACE ddprun:: DESTINATION ${DDPRUN_PACKAGE_DIR}
  COMPONENT development)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ddprunConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ddprunConfigVersion.cmake cmake/ddprunConfig.cmake
  DESTINATION ${DDPRUN_PACKAGE_DIR} COMPONENT development)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH DDPRUN_PC_TO_PREFIX /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" DDPRUN_PC_TO_PREFIX "${DDPRUN_PC_TO_PREFIX}")
configure_file(cmake/ddprun.pc.in ${PROJECT_BINARY_DIR}/ddprun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ddprun.pc DESTINATION ${pkgconfig_dir}
  COMPONENT development)
if(NOT SKBUILD)  # a wheel is not where a system's service comes from, and has its license elsewhere
  install(FILES scripts/ddprun-rdzvd.service DESTINATION lib/systemd/system)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_BINARY_DIR}/bin/ddprun-launch TYPE BIN)  # a link

  # Manual pages, and completions where the shells look for those of packages.
  set(DDPRUN_DOCUMENTS ${PROJECT_BINARY_DIR}/documents)
  install(FILES ${DDPRUN_DOCUMENTS}/ddprun.1 ${DDPRUN_DOCUMENTS}/ddprun-rdzvd.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${DDPRUN_DOCUMENTS}/ddprun.bash RENAME ddprun
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${DDPRUN_DOCUMENTS}/ddprun.zsh RENAME _ddprun
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${DDPRUN_DOCUMENTS}/ddprun.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
