# hvdrun::torch: libtorch, CUDA and NCCL from the pip wheel, as one imported target.
#
# find_package(Torch) is not used: it fails without a working CUDA compiler. The headers stand behind all
# others (-idirafter), because torch's include folder holds copies of google/protobuf and fmt that must
# not shadow Debian's. CUDA and NCCL come from the wheel's nvidia folders, always: one libnccl a process.
# Programs find the libraries through their run path.
set(HVDRUN_TORCH_DIR "" CACHE PATH "Folder of the torch package (empty: the one in .venv)")

function(hvdrun_find_torch out)
  set(folder "${HVDRUN_TORCH_DIR}")
  if(NOT folder)
    file(GLOB folder "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  endif()
  if(NOT EXISTS "${folder}/lib/libtorch_cpu.so" OR NOT EXISTS "${folder}/include/ATen/ATen.h")
    message(FATAL_ERROR
      "libtorch is not there (looked for it in \"${HVDRUN_TORCH_DIR}\" and in .venv): run `make venv`, "
      "or configure with -DHVDRUN_TRAINING=OFF, which needs no torch.")
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

# The C++ library ABI that the wheel was built with, as it tells in its own package file.
function(hvdrun_torch_abi folder out)
  file(STRINGS "${folder}/share/cmake/Torch/TorchConfig.cmake" line
       REGEX "_GLIBCXX_USE_CXX11_ABI=[01]" LIMIT_COUNT 1)
  string(REGEX MATCH "_GLIBCXX_USE_CXX11_ABI=[01]" definition "${line}")
  set(${out} "${definition}" PARENT_SCOPE)
endfunction()

# One shared library of the wheel as an imported target; nothing if the wheel lacks it.
function(hvdrun_torch_library name file)
  if(EXISTS "${file}")
    add_library(hvdrun::${name} SHARED IMPORTED GLOBAL)
    set_target_properties(hvdrun::${name} PROPERTIES IMPORTED_LOCATION "${file}")
    target_link_libraries(hvdrun_torch INTERFACE hvdrun::${name})
  endif()
endfunction()

hvdrun_find_torch(torch_dir)
hvdrun_torch_abi("${torch_dir}" torch_abi)
get_filename_component(site_packages "${torch_dir}" DIRECTORY)
file(GLOB nvidia_includes "${site_packages}/nvidia/*/include")
file(GLOB nvidia_libs "${site_packages}/nvidia/*/lib")
file(GLOB cudart "${site_packages}/nvidia/*/lib/libcudart.so.*")
file(GLOB nccl "${site_packages}/nvidia/*/lib/libnccl.so.*")

add_library(hvdrun_torch INTERFACE)
add_library(hvdrun::torch ALIAS hvdrun_torch)
foreach(folder IN ITEMS "${torch_dir}/include" "${torch_dir}/include/torch/csrc/api/include"
        LISTS nvidia_includes)
  target_compile_options(hvdrun_torch INTERFACE "SHELL:-idirafter ${folder}")
endforeach()
target_compile_definitions(hvdrun_torch INTERFACE ${torch_abi})

# libtorch_cuda registers its kernels when it is loaded, and no symbol of it is named by a program: the
# linker must keep it all the same. rpath-link: the CUDA libraries that torch's own libraries ask for.
target_link_options(hvdrun_torch INTERFACE "LINKER:--no-as-needed")
hvdrun_torch_library(torch_core "${torch_dir}/lib/libc10.so")
hvdrun_torch_library(torch_cpu "${torch_dir}/lib/libtorch_cpu.so")
hvdrun_torch_library(torch_all "${torch_dir}/lib/libtorch.so")
hvdrun_torch_library(torch_c10_cuda "${torch_dir}/lib/libc10_cuda.so")
hvdrun_torch_library(torch_cuda "${torch_dir}/lib/libtorch_cuda.so")
hvdrun_torch_library(cudart "${cudart}")
hvdrun_torch_library(nccl "${nccl}")
foreach(folder IN ITEMS "${torch_dir}/lib" LISTS nvidia_libs)
  target_link_options(hvdrun_torch INTERFACE "LINKER:-rpath,${folder}" "LINKER:-rpath-link,${folder}")
endforeach()
message(STATUS "libtorch: ${torch_dir}")
