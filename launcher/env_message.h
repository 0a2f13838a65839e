// Variables as they travel in a message. Pure.
#pragma once

#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"
#include "proto/worker_env.h"

namespace hvd {

inline void add_env(const EnvList& environment,
                    google::protobuf::RepeatedPtrField<v1::EnvVar>* out) {
  for (const auto& [name, value] : environment) {
    v1::EnvVar* variable = out->Add();
    variable->set_name(name);
    variable->set_value(value);
  }
}

}  // namespace hvd
