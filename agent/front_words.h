// What the files of the desk say of visitors and jobs, in the log and to them.
#pragma once

#include <string>
#include <string_view>

#include "agent/front_desk.h"
#include "agent/job_record.h"
#include "base/log.h"

namespace hvd {

[[nodiscard]] inline LogFields fields_of(const Visitor& visitor, std::string_view event) {
  return {{"HVDRUN_EVENT", std::string(event)},
          {"HVDRUN_CLIENT", visitor.client},
          {"HVDRUN_PEER", visitor.address}};
}

[[nodiscard]] inline LogFields fields_of(const JobRecord& record, std::string_view event) {
  return {{"HVDRUN_EVENT", std::string(event)},
          {"HVDRUN_CLIENT", record.client},
          {"HVDRUN_PEER", record.address},
          {"HVDRUN_JOB_ID", record.job_id},
          {"HVDRUN_NODE", std::to_string(record.node)},
          {"HVDRUN_USER", record.user}};
}

[[nodiscard]] inline std::string job_text(const JobRecord& record) {
  return fmt::format("job {} node {}", record.job_id, record.node);
}

[[nodiscard]] inline std::int64_t epoch_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(realtime_now()).count();
}

}  // namespace hvd
