#include "training/petrv2/config.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "training/petrv2/model/builtin_configs.h"

namespace hvd::petrv2 {
namespace {

// Leaves the parser for parse_config(), which adds the file's name.
class ConfigProblem : public std::runtime_error {
 public:
  ConfigProblem(const YAML::Mark& mark, const std::string& message)
      : std::runtime_error(message), line(mark.line + 1) {}
  int line;
};

// One YAML map: hands out values by key and refuses what nobody asked for.
class Section {
 public:
  Section(const YAML::Node& node, std::string name) : node_(node), name_(std::move(name)) {
    if (!node.IsMap()) {
      throw ConfigProblem(node.Mark(), fmt::format("\"{}\" is not a map of keys", name_));
    }
    std::set<std::string> keys;
    for (const auto& entry : node_) {
      if (keys.insert(entry.first.as<std::string>()).second) continue;
      throw ConfigProblem(entry.first.Mark(),
                          fmt::format("\"{}\" is there twice", entry.first.as<std::string>()));
    }
  }

  [[nodiscard]] bool has(const std::string& key) const { return node_[key].IsDefined(); }

  Section section(const std::string& key) { return {required(key), key}; }

  template <typename T>
  void value(const std::string& key, T& out) {
    if (const YAML::Node found = find(key)) out = convert<T>(key, found);
  }

  template <typename T>
  void number(const std::string& key, T& out, T low, T high) {
    const YAML::Node found = find(key);
    if (!found) return;
    out = convert<T>(key, found);
    if (!(out >= low && out <= high)) {
      throw ConfigProblem(found.Mark(),
                          fmt::format("{}: {} is not within {} and {}", key, out, low, high));
    }
  }

  void range(const std::string& key, std::array<double, 2>& out) {
    value(key, out);
    if (!(out[0] <= out[1])) {
      throw ConfigProblem(node_[key].Mark(), fmt::format("{}: the range is empty", key));
    }
  }

  template <typename T>
  void word(const std::string& key, T& out,
            std::initializer_list<std::pair<std::string_view, T>> words) {
    const YAML::Node found = find(key);
    if (!found) return;
    const auto given = convert<std::string>(key, found);
    std::string known;
    for (const auto& [name, meaning] : words) {
      if (given == name) {
        out = meaning;
        return;
      }
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    }
    throw ConfigProblem(found.Mark(), fmt::format("{}: \"{}\" is none of {}", key, given, known));
  }

  void finish() const {
    for (const auto& entry : node_) {
      const auto key = entry.first.as<std::string>();
      if (!asked_.contains(key)) {
        throw ConfigProblem(entry.first.Mark(),
                            fmt::format("\"{}\" is not a key of \"{}\"", key, name_));
      }
    }
  }

 private:
  YAML::Node find(const std::string& key) {
    asked_.insert(key);
    return node_[key].IsDefined() ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
  }

  YAML::Node required(const std::string& key) {
    asked_.insert(key);
    if (!has(key)) {
      throw ConfigProblem(node_.Mark(), fmt::format("\"{}\" lacks the key \"{}\"", name_, key));
    }
    return node_[key];
  }

  template <typename T>
  T convert(const std::string& key, const YAML::Node& found) const {
    try {
      return found.as<T>();
    } catch (const YAML::BadConversion&) {
      throw ConfigProblem(found.Mark(), fmt::format("{}: the value has the wrong type", key));
    }
  }

  const YAML::Node node_;
  const std::string name_;
  std::set<std::string> asked_;
};

constexpr int kMaxCount = 1 << 20;

BackboneConfig read_backbone(Section section) {
  BackboneConfig backbone;
  section.word("kind", backbone.kind,
               {{"resnet", BackboneKind::kResNet}, {"vovnet", BackboneKind::kVovNet}});
  if (backbone.kind == BackboneKind::kVovNet) {
    section.word("depth", backbone.depth = 99, {{"99", 99}});
  } else {
    section.word("depth", backbone.depth, {{"18", 18}, {"50", 50}, {"101", 101}});
    section.word("style", backbone.style,
                 {{"pytorch", ResNetStyle::kPytorch}, {"caffe", ResNetStyle::kCaffe}});
    section.number("base_width", backbone.base_width, 1, 1024);
  }
  section.value("trainable_norm", backbone.has_trainable_norm);
  section.value("checkpoints", backbone.has_checkpoints);
  section.finish();
  return backbone;
}

ImageConfig read_image(Section section, const YAML::Node& node) {
  ImageConfig image;
  section.number("height", image.height, 32, 1 << 14);
  section.number("width", image.width, 32, 1 << 14);
  section.word("order", image.is_bgr, {{"rgb", false}, {"bgr", true}});
  section.value("mean", image.mean);
  section.value("std", image.std);
  section.finish();
  if (image.height % 32 != 0 || image.width % 32 != 0) {
    throw ConfigProblem(node.Mark(), "height and width of the image are multiples of 32");
  }
  for (const double deviation : image.std) {
    if (!(deviation > 0)) throw ConfigProblem(node.Mark(), "std of the image is not positive");
  }
  return image;
}

DenoisingConfig read_denoising(Section section) {
  DenoisingConfig denoising;
  section.number("groups", denoising.groups, 0, 1000);
  section.number("noise_scale", denoising.noise_scale, 0.0, 10.0);
  section.number("split", denoising.split, 0.0, 2.0);
  section.finish();
  return denoising;
}

void read_head(Section& section, ModelConfig& model) {
  section.number("embed", model.embed, 4, 1 << 14);
  section.number("heads", model.heads, 1, 256);
  section.number("layers", model.layers, 1, 100);
  section.number("ffn", model.ffn, 1, 1 << 16);
  section.number("queries", model.queries, 1, kMaxCount);
  section.number("depth_bins", model.depth_bins, 1, 1024);
  section.value("sine", model.has_sine);
  section.number("dropout", model.dropout, 0.0, 0.9);
  section.number("cross_attention_dropout", model.cross_attention_dropout, 0.0, 0.9);
  section.number("grid_mask_probability", model.grid_mask_probability, 0.0, 1.0);
  section.value("code_weights", model.code_weights);
  section.word("matcher", model.matcher,
               {{"plain", MatcherKind::kPlain}, {"weighted", MatcherKind::kWeighted}});
  section.value("decoder_checkpoints", model.has_decoder_checkpoints);
}

ModelConfig read_model(Section section, const YAML::Node& node) {
  ModelConfig model;
  model.backbone = read_backbone(section.section("backbone"));
  model.image = read_image(section.section("image"), node["image"]);
  section.word("feature", model.feature, {{"p4", FeatureLevel::kP4}, {"c5", FeatureLevel::kC5}});
  read_head(section, model);
  if (section.has("denoising")) model.denoising = read_denoising(section.section("denoising"));
  section.finish();
  if (model.embed % model.heads != 0 || model.embed % 4 != 0) {
    throw ConfigProblem(node.Mark(), "embed is a multiple of 4 and of the number of heads");
  }
  return model;
}

TrainConfig read_train(Section section) {
  TrainConfig train;
  section.number("lr", train.lr, 0.0, 10.0);
  section.number("backbone_lr_factor", train.backbone_lr_factor, 0.0, 100.0);
  section.number("weight_decay", train.weight_decay, 0.0, 1.0);
  section.value("betas", train.betas);
  section.number("eps", train.eps, 0.0, 1.0);
  section.number("epochs", train.epochs, 1, kMaxCount);
  section.number("warmup_iterations", train.warmup_iterations, 0, kMaxCount);
  section.number("warmup_ratio", train.warmup_ratio, 0.0, 1.0);
  section.number("min_lr_ratio", train.min_lr_ratio, 0.0, 1.0);
  section.number("clip_norm", train.clip_norm, 0.0, 1e9);
  section.number("reference_batch", train.reference_batch, 1, kMaxCount);
  section.number("batch_per_rank", train.batch_per_rank, 1, kMaxCount);
  section.range("resize_range", train.resize_range);
  section.range("rotation_range", train.rotation_range);
  section.range("scale_range", train.scale_range);
  section.number("flip_probability", train.flip_probability, 0.0, 1.0);
  section.finish();
  return train;
}

Config read_config(const YAML::Node& root) {
  Section section(root, "configuration");
  Config config;
  Section model = section.section("model");
  config.model = read_model(std::move(model), root["model"]);
  config.train = read_train(section.section("train"));
  section.finish();
  return config;
}

std::string names_for_message() {
  std::string names;
  for (const BuiltinConfig& config : builtin_configs()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", config.name);
  }
  return names;
}

Result<Config> load_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return make_error(ExitCode::kUsage, "cannot read the configuration {}: {}", path,
                      errno != 0 ? std::strerror(errno) : "it is empty");
  }
  return parse_config(text.str(), path);
}

}  // namespace

std::vector<std::string> builtin_config_names() {
  std::vector<std::string> names;
  for (const BuiltinConfig& config : builtin_configs()) names.emplace_back(config.name);
  return names;
}

Result<Config> parse_config(std::string_view yaml, const std::string& file) {
  try {
    Config config = read_config(YAML::Load(std::string(yaml)));
    config.name = std::filesystem::path(file).stem().string();
    config.yaml = yaml;
    return config;
  } catch (const ConfigProblem& problem) {
    return make_error(ExitCode::kUsage, "{}:{}: {}", file, problem.line, problem.what());
  } catch (const YAML::Exception& problem) {
    return make_error(ExitCode::kUsage, "{}:{}: {}", file, problem.mark.line + 1, problem.msg);
  }
}

Result<Config> load_config(const std::string& name_or_path) {
  for (const BuiltinConfig& config : builtin_configs()) {
    if (name_or_path == config.name) {
      return parse_config(config.yaml, fmt::format("{}.yaml", config.name));
    }
  }
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".yaml")) {
    return load_file(name_or_path);
  }
  return make_error(ExitCode::kUsage,
                    "there is no configuration \"{}\"; there are {}, and any YAML file by its path",
                    name_or_path, names_for_message());
}

}  // namespace hvd::petrv2
