# The LibTorch part: one library that does not know its device, and two programs. The CPU program
# loads no CUDA library; if a device is present it executes the CUDA program.
find_package(LibTorch 2.11 REQUIRED)
add_compile_definitions(DDPRUN_TORCH_VERSION="${LibTorch_VERSION}")

ddprun_room(trainer_torch
  SOURCES model/resnet18.cpp ddp/group.cpp ddp/data_parallel.cpp
          train/sgd.cpp train/precision.cpp train/host_batches.cpp train/device_batches.cpp
          train/device_sums.cpp train/model_state.cpp train/saver.cpp train/export.cpp
          train/setup.cpp train/session.cpp train/tree_step.cpp train/transfer.cpp train/resume.cpp
          train/evaluate.cpp train/loop.cpp train/training.cpp
  LINK ddprun_trainer_options ddprun_trainer_data ddprun_trainer_metrics ddprun_trainer_checkpoint
       ddprun_trainer_program ddprun_trainer_recover ddprun_worker LibTorch::cpu)

ddprun_room(trainer_device_none SOURCES device/none.cpp LINK LibTorch::cpu)
ddprun_program(resnet18_cifar10
  SOURCES main.cpp LINK ddprun_trainer_torch ddprun_trainer_device_none)
# Bound as they are called: main() refuses another torch, which may lack some symbols.
target_link_options(resnet18_cifar10 PRIVATE -Wl,-z,lazy)

if(LibTorch_CUDA_FOUND)
  ddprun_room(trainer_device_cuda SOURCES device/cuda.cpp LINK LibTorch::cuda)
  ddprun_program(resnet18_cifar10_cuda
    SOURCES main.cpp LINK ddprun_trainer_torch ddprun_trainer_device_cuda)
  target_link_options(resnet18_cifar10_cuda PRIVATE -Wl,-z,lazy)
else()
  string(REPLACE ";" ", " missing "${LibTorch_CUDA_MISSING}")
  message(STATUS "resnet18_cifar10_cuda is not built: no ${missing} (pip: nvidia-cuda-crt and "
    "nvidia-cuda-cccl of the wheel's CUDA version)")
endif()
