add_library(hvdrun_petrv2_optim STATIC
  petrv2/optim/schedule.cc petrv2/optim/adamw.cc petrv2/optim/clip.cc)
add_library(hvdrun::petrv2_optim ALIAS hvdrun_petrv2_optim)
target_link_libraries(hvdrun_petrv2_optim PUBLIC hvdrun::base PRIVATE hvdrun::flags)
hvdrun_uses_torch(hvdrun_petrv2_optim)

hvdrun_test(petrv2_schedule_test SRCS petrv2/optim/schedule_test.cc LIBS hvdrun::petrv2_optim)
hvdrun_test(petrv2_optim_test SRCS petrv2/optim/optim_test.cc LIBS hvdrun::petrv2_optim TORCH
            LABEL training)
