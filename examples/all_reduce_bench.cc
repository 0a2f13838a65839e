// All-reduce, measured and checked by the conventions of nccl-tests: a line a size with the time of
// one call, algbw = bytes / time, busbw = algbw * 2 (n - 1) / n, and the number of wrong elements
// of a checked call; out of place (the input is copied first; the copy is in the time) and in
// place.
//   hvdrun -np 4 build/examples/all_reduce_bench -b 8 -e 64M -f 4
//   hvdrun -np 8 build/examples/all_reduce_bench -b 1M -e 1G --device cuda
// Inputs are small whole numbers, so that every type's sum is exact. Times are means over the
// ranks. Ends with 1 if an element was wrong.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "bench_memory.h"
#include "bench_options.h"
#include "hvdrun/runtime.h"
#include "runtime/half_float.h"
#include "runtime/worker_exit.h"

namespace {

using hvd::DataType;
using hvd::Result;
using Clock = std::chrono::steady_clock;

template <typename T>
void store(std::byte* at, double value) {
  const auto typed = static_cast<T>(value);
  std::memcpy(at, &typed, sizeof typed);
}

void store_as(DataType type, std::byte* at, int value) {
  switch (type) {
    case DataType::kFloat64:
      return store<double>(at, value);
    case DataType::kFloat32:
      return store<float>(at, value);
    case DataType::kFloat16:
      return store<std::uint16_t>(at, hvd::to_float16(static_cast<float>(value)).bits);
    case DataType::kBfloat16:
      return store<std::uint16_t>(at, hvd::to_bfloat16(static_cast<float>(value)).bits);
    case DataType::kInt32:
      return store<std::int32_t>(at, value);
    case DataType::kInt64:
      return store<std::int64_t>(at, value);
    case DataType::kUint8:
      return store<std::uint8_t>(at, value & 0xff);
  }
}

struct Measured {
  double micros = 0;
  std::size_t num_wrong = 0;
};

class Bench {
 public:
  Bench(hvd::Communicator& ranks, hvd::Communicator& cpu, const BenchOptions& options)
      : ranks_(ranks),
        cpu_(cpu),
        options_(options),
        period_(std::clamp(256 / ranks.size(), 2, 7)) {}

  // The number of wrong elements of all sizes.
  Result<std::size_t> run() {
    for (auto* const memory : {&input_, &output_}) {
      auto made = make_bench_memory(options_.max_bytes, options_.is_cuda);
      if (!made) return tl::unexpected(made.error());
      *memory = std::move(*made);
    }
    head();
    std::size_t num_wrong = 0;
    for (auto bytes = static_cast<double>(options_.min_bytes);
         bytes <= static_cast<double>(options_.max_bytes); bytes *= options_.factor) {
      const auto wrong = measure(static_cast<std::size_t>(bytes) / hvd::size_of(options_.type));
      if (!wrong) return wrong;
      num_wrong += *wrong;
    }
    return num_wrong;
  }

 private:
  void head() const {
    if (cpu_.rank() != 0) return;
    fmt::print("# {} ranks, {}; {} iterations after {} of warm-up\n", cpu_.size(),
               options_.is_cuda ? "NCCL" : "TCP", options_.iterations, options_.warm_up);
    fmt::print("# {:>12} {:>12} {:>9}  {:>10} {:>8} {:>8} {:>7}  {:>10} {:>8} {:>8} {:>7}\n",
               "size", "count", "type", "time", "algbw", "busbw", "#wrong", "time", "algbw",
               "busbw", "#wrong");
    fmt::print("# {:>12} {:>12} {:>9}  {:>36}  {:>36}\n", "(B)", "(elements)", "",
               "out of place, (us) (GB/s) (GB/s)", "in place, (us) (GB/s) (GB/s)");
  }

  Result<std::size_t> measure(std::size_t count) {
    const std::size_t bytes = count * hvd::size_of(options_.type);
    const auto out_of_place = measure_one(count, false);
    if (!out_of_place) return tl::unexpected(out_of_place.error());
    const auto in_place = measure_one(count, true);
    if (!in_place) return tl::unexpected(in_place.error());
    if (cpu_.rank() == 0) {
      fmt::print("  {:>12} {:>12} {:>9}  {}  {}\n", bytes, count, hvd::name_of(options_.type),
                 columns(*out_of_place, bytes), columns(*in_place, bytes));
      std::fflush(stdout);
    }
    return out_of_place->num_wrong + in_place->num_wrong;
  }

  [[nodiscard]] std::string columns(const Measured& measured, std::size_t bytes) const {
    const double algbw = static_cast<double>(bytes) / measured.micros / 1000;
    const double busbw = algbw * 2 * (cpu_.size() - 1) / cpu_.size();
    return fmt::format("{:>10.1f} {:>8.3f} {:>8.3f} {:>7}", measured.micros, algbw, busbw,
                       options_.checks ? fmt::format("{}", measured.num_wrong) : "N/A");
  }

  Result<Measured> measure_one(std::size_t count, bool is_in_place) {
    Measured measured;
    auto done = fill(count);
    if (done && options_.checks) done = check(count, is_in_place, measured.num_wrong);
    for (int i = 0; done && i < options_.warm_up; ++i) done = reduce(count, is_in_place);
    if (done) done = ranks_.wait({});
    if (done) done = cpu_.barrier({});
    const auto begin = Clock::now();
    for (int i = 0; done && i < options_.iterations; ++i) done = reduce(count, is_in_place);
    if (done) done = ranks_.wait({});
    const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
    measured.micros = time.count() / options_.iterations;
    if (done) done = total(measured);
    if (!done) return tl::unexpected(done.error());
    return measured;
  }

  // Mean time, sum of wrong elements.
  Result<void> total(Measured& measured) {
    auto done =
        cpu_.all_reduce(&measured.micros, 1, DataType::kFloat64, {hvd::ReduceOp::kAverage}, {});
    auto wrong = static_cast<std::int64_t>(measured.num_wrong);
    if (done) done = cpu_.all_reduce(&wrong, 1, DataType::kInt64, {}, {});
    measured.num_wrong = static_cast<std::size_t>(wrong);
    return done;
  }

  Result<void> reduce(std::size_t count, bool is_in_place) {
    Result<void> done;
    if (!is_in_place) {
      done = output_->copy_from(*input_, count * hvd::size_of(options_.type), ranks_.stream());
    }
    if (!done) return done;
    return ranks_.all_reduce((is_in_place ? input_ : output_)->data(), count, options_.type, {},
                             {std::chrono::minutes(10), ranks_.stream()});
  }

  // Element i of rank r is (r + i) modulo the period: sums of 256 and less are exact in every type.
  Result<void> fill(std::size_t count) {
    const int rank = cpu_.rank();
    return write(count, [&](std::size_t i) { return (rank + static_cast<int>(i)) % period_; });
  }

  template <typename Value>
  Result<void> write(std::size_t count, Value value) {
    encode(count, value);
    return input_->write(scratch_.data(), scratch_.size());
  }

  // The first `period_` values, over and over.
  template <typename Value>
  void encode(std::size_t count, Value value) {
    const std::size_t size = hvd::size_of(options_.type);
    scratch_.resize(count * size);
    for (std::size_t i = 0; i < count; ++i) {
      store_as(options_.type, scratch_.data() + i * size,
               value(i % static_cast<std::size_t>(period_)));
    }
  }

  Result<void> check(std::size_t count, bool is_in_place, std::size_t& num_wrong) {
    auto done = reduce(count, is_in_place);
    if (done) done = ranks_.wait({});
    std::vector<std::byte> found(count * hvd::size_of(options_.type));
    if (done) done = (is_in_place ? input_ : output_)->read(found.data(), found.size());
    if (!done) return done;
    encode(count, [&](std::size_t i) {
      int sum = 0;
      for (int rank = 0; rank < cpu_.size(); ++rank) sum += (rank + static_cast<int>(i)) % period_;
      return sum;
    });
    const std::size_t size = hvd::size_of(options_.type);
    for (std::size_t at = 0; at < found.size(); at += size) {
      num_wrong += std::memcmp(found.data() + at, scratch_.data() + at, size) != 0 ? 1U : 0U;
    }
    return {};
  }

  hvd::Communicator& ranks_;  // what is measured
  hvd::Communicator& cpu_;    // what the figures travel by
  const BenchOptions options_;
  const int period_;
  std::unique_ptr<BenchMemory> input_;
  std::unique_ptr<BenchMemory> output_;
  std::vector<std::byte> scratch_;
};

Result<std::size_t> run(hvd::Runtime& job, const BenchOptions& options) {
  hvd::Communicator* ranks = &job.cpu();
  if (options.is_cuda) {
    const auto connected = job.cuda();
    if (!connected) return tl::unexpected(connected.error());
    ranks = *connected;
  }
  auto num_wrong = Bench(*ranks, job.cpu(), options).run();
  if (!num_wrong) return hvd::collective_error(*ranks, num_wrong.error());
  const auto ended = job.finalize();
  if (!ended) return tl::unexpected(ended.error());
  return num_wrong;
}

int fail(const hvd::Error& error) {
  fmt::print(stderr, "all_reduce_bench: {}\n", error.message);
  return static_cast<int>(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse_bench_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "{}", bench_usage());
    return fail(options.error());
  }
  const auto place = hvd::place_of_this_process();
  if (!place) return fail(place.error());
  hvd::InitOptions init;
  if (options->is_cuda) {
    const auto device = use_cuda_device(place->local_rank);
    if (!device) return fail(device.error());
    init.device = *device;
  }
  auto job = hvd::Runtime::init(init);
  if (!job) return fail(job.error());
  const auto num_wrong = run(**job, *options);
  if (!num_wrong) (*job)->leave(num_wrong.error());
  return *num_wrong == 0 ? 0 : 1;
}
