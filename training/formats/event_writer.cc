#include "training/formats/event_writer.h"

#include <cmath>
#include <filesystem>
#include <system_error>

#include "training/formats/event.pb.h"

namespace hvd {
namespace {

std::string free_event_path(const std::string& folder, double wall_time, const std::string& host) {
  for (auto seconds = static_cast<std::int64_t>(std::floor(wall_time));; ++seconds) {
    const std::filesystem::path path =
        std::filesystem::path(folder) / fmt::format("events.out.tfevents.{:010}.{}", seconds, host);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return path.string();
  }
}

}  // namespace

std::string encode_version_event(double wall_time) {
  hvdrun::events::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  return event.SerializeAsString();
}

std::string encode_scalar_event(double wall_time, std::int64_t step,
                                const std::vector<Scalar>& scalars) {
  hvdrun::events::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    auto* const value = event.mutable_summary()->add_value();
    value->set_tag(scalar.tag);
    value->set_simple_value(static_cast<float>(scalar.value));
  }
  return event.SerializeAsString();
}

Result<EventWriter> EventWriter::create(const std::string& folder, double wall_time,
                                        const std::string& host) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return make_error("cannot make the folder {}: {}", folder, error.message());
  auto file = TfrecordWriter::create(free_event_path(folder, wall_time, host));
  if (!file) return tl::unexpected(file.error());
  // TensorBoard may be looking already: the first record stands there at once.
  const auto offset = file->append(encode_version_event(wall_time));
  if (!offset) return tl::unexpected(offset.error());
  if (auto flushed = file->flush(); !flushed) return tl::unexpected(flushed.error());
  return EventWriter(std::move(*file), wall_time);
}

Result<void> EventWriter::add_scalars(double wall_time, std::int64_t step,
                                      const std::vector<Scalar>& scalars) {
  const auto offset = file_.append(encode_scalar_event(wall_time, step, scalars));
  if (!offset) return tl::unexpected(offset.error());
  // A wall clock that was set back counts as a second.
  if (std::abs(wall_time - last_flush_) < 1) return {};
  last_flush_ = wall_time;
  return file_.flush();
}

}  // namespace hvd
