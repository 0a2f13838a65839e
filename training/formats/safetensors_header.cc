#include "training/formats/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace hvd {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr std::uint64_t kAlignment = 8;

struct ItemSize {
  std::string_view dtype;
  std::uint64_t num_bytes;
};

constexpr auto kItemSizes = std::to_array<ItemSize>({
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"I16", 2},
    {"U16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"I32", 4},
    {"U32", 4},
    {"F32", 4},
    {"I64", 8},
    {"U64", 8},
    {"F64", 8},
});

// A name as it may be printed: quoted, without control characters, not longer than a line.
std::string printable(std::string_view name) {
  constexpr std::size_t kMost = 120;
  return Json(std::string(name.substr(0, kMost)))
      .dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Parses, and refuses what the library takes silently: a key that stands twice.
Result<Json> parse_object(std::string_view text) {
  std::string twice;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto on_event = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      twice = value.get<std::string>();
    }
    return true;
  };
  if (!text.starts_with("{")) return make_error("its header is not a JSON object");
  Json json = Json::parse(text, on_event, /*allow_exceptions=*/false);
  if (!json.is_object()) return make_error("its header is not valid JSON");
  if (!twice.empty()) return make_error("its header has the key {} twice", printable(twice));
  return json;
}

std::optional<std::vector<std::uint64_t>> unsigned_list(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return std::nullopt;
  std::vector<std::uint64_t> list;
  for (const Json& item : *found) {
    if (!item.is_number_unsigned()) return std::nullopt;
    list.push_back(item.get<std::uint64_t>());
  }
  return list;
}

Result<TensorPlace> parse_tensor(const std::string& name, const Json& value,
                                 std::uint64_t num_data_bytes) {
  const auto error = [&](const std::string& what) {
    return make_error("tensor {}: {}", printable(name), what);
  };
  if (!value.is_object()) return error("its entry is not an object");
  const auto dtype = value.find("dtype");
  if (dtype == value.end() || !dtype->is_string()) return error("it has no dtype");
  const auto shape = unsigned_list(value, "shape");
  if (!shape) return error("its shape is not a list of whole numbers");
  const auto offsets = unsigned_list(value, "data_offsets");
  if (!offsets || offsets->size() != 2) return error("its data_offsets are not two whole numbers");
  TensorPlace place{dtype->get<std::string>(), *shape, offsets->at(0), offsets->at(1)};
  if (!tensor_item_size(place.dtype))
    return error("dtype " + printable(place.dtype) + " is unknown");
  const auto num_bytes = tensor_num_bytes(place.dtype, place.shape);
  if (!num_bytes) return error("its shape " + shape_text(*shape) + " is impossibly large");
  if (place.begin > place.end || place.end > num_data_bytes) {
    return error(fmt::format("its data [{}, {}) is not inside the {} bytes of data of the file",
                             place.begin, place.end, num_data_bytes));
  }
  if (place.end - place.begin != *num_bytes) {
    return error(fmt::format("{} of shape {} takes {} bytes, its data_offsets give it {}",
                             place.dtype, shape_text(*shape), *num_bytes, place.end - place.begin));
  }
  return place;
}

Result<TensorMetadata> parse_metadata(const Json& value) {
  if (!value.is_object()) return make_error("its {} is not an object", kMetadata);
  TensorMetadata metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return make_error("its {} {} is not text", kMetadata, printable(key));
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

// Whether the tensors fill the data without overlap or hole.
Result<void> check_coverage(const std::map<std::string, TensorPlace>& tensors,
                            std::uint64_t num_data_bytes) {
  std::vector<std::map<std::string, TensorPlace>::const_iterator> sorted;
  for (auto it = tensors.begin(); it != tensors.end(); ++it) sorted.push_back(it);
  std::ranges::sort(sorted, {},
                    [](const auto& it) { return std::pair(it->second.begin, it->second.end); });
  std::uint64_t end = 0;
  for (const auto& it : sorted) {
    if (it->second.begin != end) {
      return make_error("tensor {}: its data starts at {} where the one before ends at {} ({})",
                        printable(it->first), it->second.begin, end,
                        it->second.begin < end ? "an overlap" : "a hole");
    }
    end = it->second.end;
  }
  if (end == num_data_bytes) return {};
  return make_error("its tensors take {} bytes, but {} bytes of data follow the header", end,
                    num_data_bytes);
}

Result<std::uint64_t> planned_num_bytes(const TensorSpec& tensor) {
  if (tensor.name == kMetadata) return make_error("a tensor may not be named {}", kMetadata);
  const auto num_bytes = tensor_num_bytes(tensor.dtype, tensor.shape);
  if (num_bytes) return *num_bytes;
  return make_error("tensor {}: dtype {} or shape {} cannot be written", printable(tensor.name),
                    printable(tensor.dtype), shape_text(tensor.shape));
}

std::vector<std::size_t> data_order(const std::vector<TensorSpec>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const auto size_a = tensor_item_size(tensors[a].dtype);
    const auto size_b = tensor_item_size(tensors[b].dtype);
    return size_a != size_b ? size_a > size_b : tensors[a].name < tensors[b].name;
  });
  return order;
}

// The file's first bytes: length, JSON, padding.
Result<std::string> framed(const nlohmann::ordered_json& json) {
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception&) {
    return make_error("a tensor name or a metadata text is not UTF-8");
  }
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const std::uint64_t length = text.size();
  if (length > kMaxSafetensorsHeader) {
    return make_error("its header of {} bytes is longer than the {} that readers take", length,
                      kMaxSafetensorsHeader);
  }
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

std::optional<std::uint64_t> tensor_item_size(std::string_view dtype) {
  const auto* const found = std::ranges::find(kItemSizes, dtype, &ItemSize::dtype);
  if (found == kItemSizes.end()) return std::nullopt;
  return found->num_bytes;
}

std::optional<std::uint64_t> tensor_num_bytes(std::string_view dtype,
                                              const std::vector<std::uint64_t>& shape) {
  const auto item_size = tensor_item_size(dtype);
  if (!item_size) return std::nullopt;
  std::uint64_t num_bytes = *item_size;
  for (const std::uint64_t length : shape) {
    if (__builtin_mul_overflow(num_bytes, length, &num_bytes)) return std::nullopt;
  }
  return num_bytes;
}

Result<SafetensorsPlan> plan_safetensors(const std::vector<TensorSpec>& tensors,
                                         const TensorMetadata& metadata) {
  SafetensorsPlan plan;
  plan.order = data_order(tensors);
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json[kMetadata] = metadata;
  std::set<std::string_view> names;
  for (const std::size_t i : plan.order) {
    const TensorSpec& tensor = tensors[i];
    const auto num_bytes = planned_num_bytes(tensor);
    if (!num_bytes) return tl::unexpected(num_bytes.error());
    if (!names.insert(tensor.name).second) {
      return make_error("there are two tensors named {}", printable(tensor.name));
    }
    const std::uint64_t begin = plan.num_data_bytes;
    plan.num_data_bytes += *num_bytes;
    // emplace_back: looking a key up in an ordered object takes a pass over it.
    json.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(
        tensor.name, nlohmann::ordered_json{{"dtype", tensor.dtype},
                                            {"shape", tensor.shape},
                                            {"data_offsets", {begin, plan.num_data_bytes}}});
  }
  auto header = framed(json);
  if (!header) return tl::unexpected(header.error());
  plan.header = std::move(*header);
  return plan;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                   std::uint64_t num_data_bytes) {
  const auto object = parse_object(json);
  if (!object) return tl::unexpected(object.error());
  SafetensorsHeader header;
  for (const auto& [name, value] : object->items()) {
    if (name == kMetadata) {
      auto metadata = parse_metadata(value);
      if (!metadata) return tl::unexpected(metadata.error());
      header.metadata = std::move(*metadata);
      continue;
    }
    auto tensor = parse_tensor(name, value, num_data_bytes);
    if (!tensor) return tl::unexpected(tensor.error());
    header.tensors.emplace(name, std::move(*tensor));
  }
  if (auto covered = check_coverage(header.tensors, num_data_bytes); !covered) {
    return tl::unexpected(covered.error());
  }
  return header;
}

}  // namespace hvd
