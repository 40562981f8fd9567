# FindLibTorch: the LibTorch inside a PyPI torch wheel, without torch's own CMake package: that one
# stops without nvcc when the wheel is a CUDA build, and brings the CUDA language and a toolkit's
# folders along.
#
# In:   LIBTORCH_ROOT     <site-packages>/torch; default: the checkout's .venv, then
#                         CMAKE_PREFIX_PATH and Torch_DIR, then the torch that python3 would import
#       CUDAToolkit_ROOT, $CUDA_HOME   only asked for CUDA headers that pip's packages lack
# Out:  LibTorch::cpu     torch_cpu and c10, c10d with Gloo
#       LibTorch::cuda    if LibTorch_CUDA_FOUND: cpu, torch_cuda, c10_cuda, cudart, NCCL
#       LibTorch_VERSION, LibTorch_CUDA_FOUND, LibTorch_CUDA_MISSING
# Use one build folder per torch version.
set(LibTorch_NEWEST_TESTED 2.15)

function(libtorch_root out)
  set(candidates "")
  if(DDPRUN_PYTHON_TORCH)  # the programs and the Python they are compared with share one torch
    get_filename_component(bin ${DDPRUN_PYTHON_TORCH} DIRECTORY)
    file(GLOB candidates ${bin}/../lib/python3*/site-packages/torch)
  endif()
  file(GLOB default ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(APPEND candidates ${default})
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH Torch_DIR)
    list(APPEND candidates ${prefix} ${prefix}/../.. ${prefix}/../../..)
  endforeach()
  foreach(candidate IN LISTS candidates)
    if(EXISTS ${candidate}/lib/libtorch_cpu.so AND EXISTS ${candidate}/include/ATen/ATen.h)
      get_filename_component(root ${candidate} ABSOLUTE)
      set(${out} ${root} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  find_program(python NAMES python3 NO_CACHE)
  if(python)  # find_spec does not import torch: 20 ms instead of 2 s
    execute_process(OUTPUT_VARIABLE root ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE
      COMMAND ${python} -c "import importlib.util, os
spec = importlib.util.find_spec('torch')
print(os.path.dirname(spec.origin) if spec and spec.origin else '')")
  endif()
  set(${out} "${root}" PARENT_SCOPE)
endfunction()

function(libtorch_version root out)
  set(version "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS ${root}/include/${header})
      file(STRINGS ${root}/include/${header} lines
        REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      string(REGEX REPLACE "[^0-9;]+" "" version "${lines}")
      string(REPLACE ";" "." version "${version}")
    endif()
  endforeach()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(libtorch_import name location)
  add_library(LibTorch::${name} SHARED IMPORTED)
  set_target_properties(LibTorch::${name} PROPERTIES IMPORTED_LOCATION ${location})
endfunction()

function(libtorch_add_cpu root)
  find_package(Threads REQUIRED)
  libtorch_import(c10 ${root}/lib/libc10.so)
  libtorch_import(torch_cpu ${root}/lib/libtorch_cpu.so)
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    ${root}/include ${root}/include/torch/csrc/api/include)
  if(NOT EXISTS ${root}/include/gloo/context.h)
    target_include_directories(LibTorch::cpu SYSTEM INTERFACE
      ${PROJECT_SOURCE_DIR}/cmake/gloo_shim)
  endif()
  # Without these two the headers of c10d are empty.
  target_compile_definitions(LibTorch::cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  # Never libtorch.so: it needs libtorch_cuda.
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::torch_cpu LibTorch::c10 Threads::Threads)
  # libtorch_cpu finds cudart and cupti by its own RPATH, which ld does not follow.
  target_link_options(LibTorch::cpu INTERFACE LINKER:--allow-shlib-undefined)
endfunction()

# The four header places of CUDA and NCCL, and cudart. pip's nvidia-cuda-runtime lacks crt/ (package
# nvidia-cuda-crt) and nv/target (package nvidia-cuda-cccl). NO_DEFAULT_PATH: a header found by
# accident in a system folder would hide what is missing on the next machine.
function(libtorch_find_cuda root)
  file(GLOB places ${root}/../nvidia/cu[0-9]*/include ${root}/../nvidia/cuda_runtime/include
    ${root}/../nvidia/nccl/include)
  foreach(toolkit IN ITEMS "${CUDAToolkit_ROOT}" "$ENV{CUDA_HOME}")
    if(toolkit)
      list(APPEND places ${toolkit}/include)
    endif()
  endforeach()
  set(missing "")
  set(found "")
  foreach(header cuda_runtime_api.h nccl.h crt/host_config.h nv/target)
    unset(folder)
    find_path(folder ${header} HINTS ${places} PATH_SUFFIXES . cccl NO_DEFAULT_PATH NO_CACHE)
    if(folder)
      list(APPEND found ${folder})
    else()
      list(APPEND missing ${header})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  file(GLOB cudart ${root}/../nvidia/cu[0-9]*/lib/libcudart.so.*
    ${root}/../nvidia/cuda_runtime/lib/libcudart.so.*)
  foreach(library libtorch_cuda.so libc10_cuda.so)
    if(NOT EXISTS ${root}/lib/${library})
      list(APPEND missing ${library})
    endif()
  endforeach()
  if(NOT cudart)
    list(APPEND missing libcudart.so)
  endif()
  set(LibTorch_CUDA_MISSING "${missing}" PARENT_SCOPE)
  set(LibTorch_CUDA_INCLUDES "${found}" PARENT_SCOPE)
  set(LibTorch_CUDART "${cudart}" PARENT_SCOPE)
endfunction()

function(libtorch_add_cuda root)
  list(GET LibTorch_CUDART 0 cudart)
  libtorch_import(c10_cuda ${root}/lib/libc10_cuda.so)
  libtorch_import(cudart ${cudart})
  add_library(LibTorch::cuda INTERFACE IMPORTED)
  target_include_directories(LibTorch::cuda SYSTEM INTERFACE ${LibTorch_CUDA_INCLUDES})
  target_compile_definitions(LibTorch::cuda INTERFACE USE_C10D_NCCL)
  # Its kernels register from static constructors; no symbol of it need be referenced.
  target_link_libraries(LibTorch::cuda INTERFACE LibTorch::cpu
    -Wl,--push-state,--no-as-needed ${root}/lib/libtorch_cuda.so -Wl,--pop-state
    LibTorch::c10_cuda LibTorch::cudart)
endfunction()

if(NOT LIBTORCH_ROOT)
  libtorch_root(LIBTORCH_ROOT)
endif()
set(LIBTORCH_ROOT "${LIBTORCH_ROOT}" CACHE PATH "Folder with LibTorch's include/ and lib/")
libtorch_version("${LIBTORCH_ROOT}" LibTorch_VERSION)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LIBTORCH_ROOT LibTorch_VERSION
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "pip install torch==2.11.0 into .venv, or set -DLIBTORCH_ROOT")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  if(LibTorch_VERSION VERSION_GREATER_EQUAL "${LibTorch_NEWEST_TESTED}.99")
    message(WARNING
      "torch ${LibTorch_VERSION} is newer than ${LibTorch_NEWEST_TESTED}, the newest tested")
  endif()
  libtorch_add_cpu(${LIBTORCH_ROOT})
  libtorch_find_cuda(${LIBTORCH_ROOT})
  set(LibTorch_CUDA_FOUND FALSE)
  if(NOT LibTorch_CUDA_MISSING)
    libtorch_add_cuda(${LIBTORCH_ROOT})
    set(LibTorch_CUDA_FOUND TRUE)
  endif()
endif()
