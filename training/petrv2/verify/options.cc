#include "training/petrv2/verify/options.h"

#include <algorithm>

#include "base/option_table.h"

namespace hvd::petrv2 {
namespace {

constexpr std::uint64_t kMostQueries = 1 << 20;
constexpr std::uint64_t kMostSamples = 4096;
constexpr std::uint64_t kLongestSide = 1 << 14;  // px
constexpr std::uint64_t kSideUnit = 32;

bool parse_side(std::string_view text, int& side) {
  const auto parsed = parse_whole("size", text, kSideUnit, kLongestSide);
  if (!parsed || *parsed % kSideUnit != 0) return false;
  side = static_cast<int>(*parsed);
  return true;
}

Result<void> set_size(const std::string& text, VerifyOptions& options) {
  const std::size_t x = std::min(text.find('x'), text.size());
  const std::string_view height = std::string_view(text).substr(0, x);
  const std::string_view width = std::string_view(text).substr(std::min(x + 1, text.size()));
  if (parse_side(height, options.height) && parse_side(width, options.width)) return {};
  return make_error(ExitCode::kUsage, "--size {} is not HEIGHTxWIDTH in multiples of {}", text,
                    kSideUnit);
}

const std::vector<std::pair<std::string, VerifyPrecision>>& precisions() {
  static const std::vector<std::pair<std::string, VerifyPrecision>> names{
      {"fp64", VerifyPrecision::kFp64},
      {"fp32", VerifyPrecision::kFp32},
      {"tf32", VerifyPrecision::kTf32},
      {"bf16", VerifyPrecision::kBf16},
      {"fp16", VerifyPrecision::kFp16}};
  return names;
}

const OptionTable<VerifyOptions>& verify_rows() {
  using O = VerifyOptions;
  static const OptionTable<O> rows{
      text_row<O>("config", "NAME", "by name or path (petrv2_r50_p4_256x704)", &O::config),
      {"size", "HxW", "height and width of the images, multiples of 32", set_size},
      count_row<O>("queries", "object queries", 1, kMostQueries, &O::queries),
      count_row<O>("batch", "samples, alike but for their images (1)", 1, kMostSamples, &O::batch),
      text_row<O>("boxes", "FILE", "JSON: {boxes: [[x y z w l h theta vx vy]], labels: []}",
                  &O::boxes),
      positive_row<O>("bn3-scale", "factor on the third batch norm of each bottleneck (1)",
                      &O::bn3_scale),
      text_row<O>("device", "DEVICE", "cpu, cuda or cuda:N (cpu)", &O::device),
      choice_row<O, VerifyPrecision>("precision", "fp64|fp32|tf32|bf16|fp16",
                                     "bf16, fp16: of backbone and neck (fp32)", precisions(),
                                     &O::precision),
      text_row<O>("json", "FILE", "for every stage, gradient and loss", &O::json),
      flag_row<O>("help", "print this", &O::is_help)};
  return rows;
}

const OptionTable<InspectOptions>& inspect_rows() {
  using O = InspectOptions;
  static const OptionTable<O> rows{
      text_row<O>("config", "NAME", "the parameters of a configuration, by name or path",
                  &O::config),
      flag_row<O>("json", "one JSON object instead of a table", &O::is_json),
      flag_row<O>("help", "print this", &O::is_help)};
  return rows;
}

// Takes the folder, the one word that is no option and no option's value, out of the arguments.
std::string take_folder(std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_value = i > 0 && arguments[i - 1] == "--config";
    if (is_value || arguments[i].starts_with('-')) continue;
    std::string folder = arguments[i];
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
    return folder;
  }
  return {};
}

}  // namespace

Result<VerifyOptions> parse_verify_options(const std::vector<std::string>& arguments) {
  auto options = parse_options(verify_rows(), "petrv2 verify", arguments);
  if (options) options->is_golden = arguments.empty();
  return options;
}

Result<InspectOptions> parse_inspect_options(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest = arguments;
  const std::string folder = take_folder(rest);
  auto options = parse_options(inspect_rows(), "petrv2 inspect", rest);
  if (!options) return options;
  options->folder = folder;
  if (options->is_help || options->config.empty() != folder.empty()) return options;
  return make_error(ExitCode::kUsage,
                    "petrv2 inspect wants either --config NAME or one folder of records");
}

std::string verify_help() {
  return option_help(verify_rows(),
                     "petrv2 verify: checks the golden numbers of the model on the CPU in fp64.\n"
                     "petrv2 verify OPTIONS: one forward and backward pass and one step of a "
                     "configuration on formula weights.\n\n");
}

std::string inspect_help() {
  return option_help(inspect_rows(),
                     "petrv2 inspect --config NAME | FOLDER: the parameters of a configuration, or "
                     "what the records in a folder hold.\n\n");
}

std::string_view precision_name(VerifyPrecision precision) {
  for (const auto& [name, known] : precisions()) {
    if (precision == known) return name;
  }
  return "";
}

}  // namespace hvd::petrv2
