# Collectives over NCCL, with the one libnccl of the torch wheel.
add_library(hvdrun_nccl_communicator STATIC
  nccl_communicator.cc nccl_device.cc nccl_handle.cc nccl_pending.cc)
add_library(hvdrun::nccl_communicator ALIAS hvdrun_nccl_communicator)
target_link_libraries(hvdrun_nccl_communicator PUBLIC hvdrun::communicator hvdrun::nccl hvdrun::cudart
                      PRIVATE hvdrun::flags)
foreach(folder IN LISTS nvidia_includes)
  target_compile_options(hvdrun_nccl_communicator PRIVATE "SHELL:-idirafter ${folder}")
endforeach()
target_compile_definitions(hvdrun_nccl_communicator INTERFACE HVDRUN_HAVE_NCCL)
set_target_properties(hvdrun_nccl_communicator PROPERTIES POSITION_INDEPENDENT_CODE ON)
