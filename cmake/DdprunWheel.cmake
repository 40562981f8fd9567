# A wheel (pyproject.toml): scikit-build-core sets SKBUILD and the folders of a wheel. Its programs
# land in the environment's bin, the module in its site-packages; man pages, completions and the
# service stay out (DdprunInstall.cmake), as does what C++ projects need (component "development",
# pyproject.toml).
if(SKBUILD)
  set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
  set(DDPRUN_PYTHON_DIR ${SKBUILD_PLATLIB_DIR})
  # Python reads it at its start: with DDPRUN_TORCH=1 torch.distributed.run is ddprun.
  install(FILES worker_api/python/ddprun.pth DESTINATION ${SKBUILD_PLATLIB_DIR})
endif()

# ddprun_find_libdw(OUT): elfutils' library; for a wheel the static one with all that it needs,
# because a wheel may depend on nothing but libc. Empty if it is missing.
function(ddprun_find_libdw out)
  set(needed dw)
  if(SKBUILD)
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
    list(APPEND needed elf lzma bz2 z)
    find_library(DDPRUN_STATIC_zstd zstd)  # libelf 0.190 and later may need it
  endif()
  set(found "")
  foreach(name IN LISTS needed)
    find_library(DDPRUN_LIB_${name} ${name} DOC "lib${name}, for ddprun-stacks")
    if(NOT DDPRUN_LIB_${name})
      message(STATUS "no lib${name}: ddprun-stacks is not built")
      set(${out} "" PARENT_SCOPE)
      return()
    endif()
    list(APPEND found ${DDPRUN_LIB_${name}})
  endforeach()
  if(SKBUILD AND DDPRUN_STATIC_zstd)
    list(APPEND found ${DDPRUN_STATIC_zstd})
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()
