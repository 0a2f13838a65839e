#include "runtime/nccl_variables.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(NcclVariables, UnreadNamesAreWarnedOfWithTheRemedy) {
  const std::vector<std::pair<const char*, const char*>> table = {
      {"NCCL_SOCKET_TIMEOUT", "--start-timeout"}, {"NCCL_TIMEOUT", "NCCL has no such limit"},
      {"NCCL_LAUNCH_TIMEOUT", "limit"},           {"NCCL_BLOCKING_WAIT", "TORCH_NCCL_"},
      {"NCCL_ASYNC_ERROR_HANDLING", "PyTorch"},   {"NCCL_IB_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"},
      {"NCCL_MAX_NRINGS", "NCCL_MAX_CTAS"},       {"NCCL_COMM_BLOCKING", "unset it"},
  };
  for (const auto& [name, remedy] : table) {
    EXPECT_THAT(nccl_variable_warnings({{name, "30"}}),
                ElementsAre(AllOf(HasSubstr(std::string(name) + "=30"), HasSubstr(remedy))));
  }
}

TEST(NcclVariables, WhatNcclReadsIsNotWarnedOf) {
  EXPECT_THAT(nccl_variable_warnings({{"NCCL_DEBUG", "WARN"},
                                      {"NCCL_ALGO", "Ring"},
                                      {"TORCH_NCCL_BLOCKING_WAIT", "1"},
                                      {"NCCL_IB_TIMEOUT", "22"}}),
              IsEmpty());
}

TEST(NcclVariables, DefaultsGiveWayToTheUser) {
  EXPECT_THAT(nccl_defaults({}, 3), ElementsAre(Pair("NCCL_RUNTIME_CONNECT", "0")));
  EXPECT_THAT(nccl_defaults({{"NCCL_RUNTIME_CONNECT", "1"}}, 3), IsEmpty());
}

TEST(NcclVariables, ASharedGpuMakesEachRankItsOwnNode) {
  const EnvList allowed = {{"HVDRUN_ALLOW_SHARED_GPU", "1"}, {"NCCL_HOSTID", "the node's"}};
  EXPECT_THAT(
      nccl_defaults(allowed, 3),
      UnorderedElementsAre(Pair("NCCL_RUNTIME_CONNECT", "0"), Pair("NCCL_IB_DISABLE", "1"),
                           Pair("NCCL_SOCKET_IFNAME", "lo"), Pair("NCCL_HOSTID", "hvdrun-rank-3")));
  EXPECT_THAT(nccl_defaults({{"HVDRUN_ALLOW_SHARED_GPU", "1"},
                             {"NCCL_SOCKET_IFNAME", "eth0"},
                             {"NCCL_IB_DISABLE", "0"},
                             {"NCCL_RUNTIME_CONNECT", "0"}},
                            4),
              ElementsAre(Pair("NCCL_HOSTID", "hvdrun-rank-4")));
  EXPECT_FALSE(allows_shared_gpu({{"HVDRUN_ALLOW_SHARED_GPU", "0"}}));
}

TEST(NcclVariables, SettingsComeFromTheEnvironmentFirst) {
  const EnvList environment = {
      {"NCCL_ALGO", "Ring"}, {"NCCL_SOCKET_IFNAME", "eth3"}, {"PATH", "/bin"}};
  EXPECT_THAT(
      nccl_settings(environment, {"# of the user\nNCCL_ALGO=Tree\nNCCL_PROTO=LL\nnonsense\n",
                                  "NCCL_PROTO=Simple\nNCCL_BUFFSIZE=1\nNCCL_DEBUG=INFO\nOTHER=1"}),
      ElementsAre("NCCL_ALGO=Ring", "NCCL_BUFFSIZE=1", "NCCL_PROTO=LL"));
}

TEST(NcclVariables, KnowsTheConfigurationFiles) {
  EXPECT_THAT(nccl_configuration_files({{"HOME", "/home/u"}}),
              ElementsAre("/home/u/.nccl.conf", "/etc/nccl.conf"));
  EXPECT_THAT(nccl_configuration_files({{"HOME", "/home/u"}, {"NCCL_CONF_FILE", "/x"}}),
              ElementsAre("/x", "/etc/nccl.conf"));
}

}  // namespace
}  // namespace hvd
