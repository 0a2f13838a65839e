// Results: every operation, type, size and number of ranks against a serial reference, bit by bit.
#include "runtime/tcp_communicator.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>

#include "runtime/half_float.h"
#include "tests/support/rank_team.h"

namespace hvd {
namespace {

using test::connect_team;
using test::Team;
using test::with_team;

const Call kCall{std::chrono::seconds(20), nullptr};
constexpr int kTeamSizes[] = {1, 2, 3, 4, 5, 8};
constexpr std::size_t kCounts[] = {0, 1, 3, 1000, 33001};
constexpr std::size_t kMany = 9001;  // a ring in most types

template <typename T>
struct Traits;
template <>
struct Traits<double> {
  static constexpr DataType kType = DataType::kFloat64;
};
template <>
struct Traits<float> {
  static constexpr DataType kType = DataType::kFloat32;
};
template <>
struct Traits<Float16> {
  static constexpr DataType kType = DataType::kFloat16;
};
template <>
struct Traits<Bfloat16> {
  static constexpr DataType kType = DataType::kBfloat16;
};
template <>
struct Traits<std::int32_t> {
  static constexpr DataType kType = DataType::kInt32;
};
template <>
struct Traits<std::int64_t> {
  static constexpr DataType kType = DataType::kInt64;
};
template <>
struct Traits<std::uint8_t> {
  static constexpr DataType kType = DataType::kUint8;
};

// Of a number that T holds exactly, or of a quotient with one rounding.
template <typename T>
T element(double value) {
  if constexpr (std::is_same_v<T, Float16>) return to_float16(static_cast<float>(value));
  if constexpr (std::is_same_v<T, Bfloat16>) return to_bfloat16(static_cast<float>(value));
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
}

// Rank r's element i: small whole numbers, so that sums are exact in every type and order.
int input(int rank, std::size_t i) {
  return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5 + i / 97) % 13);
}

double reduced(ReduceOp op, int size, std::size_t i) {
  double result = input(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double value = input(rank, i);
    if (op == ReduceOp::kMin) {
      result = std::min(result, value);
    } else if (op == ReduceOp::kMax) {
      result = std::max(result, value);
    } else {
      result += value;
    }
  }
  return result;
}

template <typename T>
T reference(ReduceOp op, int size, std::size_t i) {
  const double result = reduced(op, size, i);
  if (op != ReduceOp::kAverage) return element<T>(result);
  if constexpr (std::is_same_v<T, double> || std::is_integral_v<T>)
    return element<T>(result / size);
  return element<T>(static_cast<float>(result) / static_cast<float>(size));
}

template <typename T>
class TcpCommunicatorTest : public testing::Test {
 protected:
  static std::vector<T> inputs(int rank, std::size_t count) {
    std::vector<T> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = element<T>(input(rank, i));
    return data;
  }
  static bool is_equal(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
  }
  static constexpr DataType kType = Traits<T>::kType;
};

using Types =
    testing::Types<double, float, Float16, Bfloat16, std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(TcpCommunicatorTest, Types);

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax};

TYPED_TEST(TcpCommunicatorTest, AllReduceIsTheReferenceBitByBitOnEveryRank) {
  for (const int size : kTeamSizes) {
    Team team = connect_team(size, size % 2 == 0);
    for (const ReduceOp op : kOps) {
      for (const std::size_t few_or_many : kCounts) {
        const std::size_t count = op == ReduceOp::kSum ? few_or_many : std::min(few_or_many, kMany);
        std::vector<TypeParam> expected(count);
        for (std::size_t i = 0; i < count; ++i) expected[i] = reference<TypeParam>(op, size, i);
        with_team(team, [&](Communicator& communicator) {
          auto data = this->inputs(communicator.rank(), count);
          const auto done =
              communicator.all_reduce(data.data(), count, this->kType, {op, 1}, kCall);
          EXPECT_TRUE(done) << done.error().message;
          EXPECT_TRUE(this->is_equal(data, expected))
              << name_of(op) << " of " << count << " on rank " << communicator.rank() << " of "
              << size;
        });
      }
    }
  }
}

TYPED_TEST(TcpCommunicatorTest, ReduceScatterGivesEachRankItsPart) {
  for (const int size : kTeamSizes) {
    Team team = connect_team(size, size % 2 == 0);
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : {0, 1, 3, 1031}) {
        with_team(team, [&](Communicator& communicator) {
          const auto rank = static_cast<std::size_t>(communicator.rank());
          const auto data =
              this->inputs(communicator.rank(), count * static_cast<std::size_t>(size));
          std::vector<TypeParam> output(count), expected(count);
          for (std::size_t i = 0; i < count; ++i) {
            expected[i] = reference<TypeParam>(op, size, rank * count + i);
          }
          EXPECT_TRUE(communicator.reduce_scatter(data.data(), output.data(), count, this->kType,
                                                  {op, 1}, kCall));
          EXPECT_TRUE(this->is_equal(output, expected)) << name_of(op) << " of " << count;
        });
      }
    }
  }
}

TYPED_TEST(TcpCommunicatorTest, AllGatherAndBroadcastCarryEveryRanksElements) {
  for (const int size : kTeamSizes) {
    Team team = connect_team(size, size % 2 == 0);
    for (const std::size_t count : {0, 1, 3, 1000, 5003}) {
      std::vector<TypeParam> all;
      for (int rank = 0; rank < size; ++rank) {
        const auto part = this->inputs(rank, count);
        all.insert(all.end(), part.begin(), part.end());
      }
      with_team(team, [&](Communicator& communicator) {
        const auto own = this->inputs(communicator.rank(), count);
        std::vector<TypeParam> output(all.size());
        EXPECT_TRUE(communicator.all_gather(own.data(), output.data(), count, this->kType, kCall));
        EXPECT_TRUE(this->is_equal(output, all)) << "all-gather of " << count;
        for (int root = 0; root < size; ++root) {
          auto data = own;
          EXPECT_TRUE(communicator.broadcast(data.data(), count, this->kType, root, kCall));
          EXPECT_TRUE(this->is_equal(data, this->inputs(root, count))) << "from rank " << root;
        }
      });
    }
  }
}

TEST(TcpCommunicator, MillionsOfRandomNumbersHaveEqualBitsOnAllRanks) {
  constexpr std::size_t kCount = 1'000'003;
  Team team = connect_team(4);
  std::vector<std::vector<float>> results(4);
  std::vector<double> sum(kCount);
  std::vector<std::vector<float>> inputs(4, std::vector<float>(kCount));
  std::minstd_rand random(1);
  for (auto& data : inputs) {
    for (std::size_t i = 0; i < kCount; ++i) {
      data[i] = static_cast<float>(random()) / 1e9F - 1;
      sum[i] += 0.5 * static_cast<double>(data[i]);
    }
  }
  with_team(team, [&](Communicator& communicator) {
    auto& data = results[static_cast<std::size_t>(communicator.rank())];
    data = inputs[static_cast<std::size_t>(communicator.rank())];
    EXPECT_TRUE(communicator.all_reduce(data.data(), kCount, DataType::kFloat32,
                                        {ReduceOp::kSum, 0.5}, kCall));
  });
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(results[0][i], sum[i], 1e-6) << i;
  }
  for (int rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(std::memcmp(results[0].data(), results[static_cast<std::size_t>(rank)].data(),
                          kCount * sizeof(float)),
              0);
  }
}

TEST(TcpCommunicator, MillionsOfHalfNumbersGoInSeveralPieces) {
  constexpr std::size_t kCount = 5'000'011;
  Team team = connect_team(2);
  with_team(team, [&](Communicator& communicator) {
    std::vector<Bfloat16> data(kCount, to_bfloat16(communicator.rank() == 0 ? 1.5F : 2.0F));
    data.back() = to_bfloat16(static_cast<float>(communicator.rank()));
    EXPECT_TRUE(communicator.all_reduce(data.data(), kCount, DataType::kBfloat16,
                                        {ReduceOp::kAverage, 1}, kCall));
    std::size_t num_wrong = 0;
    for (std::size_t i = 0; i + 1 < kCount; ++i) num_wrong += to_float(data[i]) != 1.75F ? 1 : 0;
    EXPECT_EQ(num_wrong, 0U);
    EXPECT_EQ(to_float(data.back()), 0.5F);
  });
}

TEST(TcpCommunicator, ABarrierIsPassedByAllAfterTheLastHasCome) {
  for (const int size : {2, 3, 5}) {
    Team team = connect_team(size, size % 2 == 0);
    std::atomic<int> num_here = 0;
    with_team(team, [&](Communicator& communicator) {
      for (int round = 1; round <= 20; ++round) {
        ++num_here;
        EXPECT_TRUE(communicator.barrier(kCall));
        EXPECT_GE(num_here.load(), round * size);
        EXPECT_TRUE(communicator.barrier(kCall));
      }
    });
  }
}

TEST(TcpCommunicator, FinalizedItIsOverAndLeavesNoDescriptorAndNoThread) {
  const int fds = test::count_own("fd");
  const int threads = test::count_own("task");
  {
    Team team = connect_team(5);
    EXPECT_EQ(test::count_own("task"), threads);
    with_team(team, [](Communicator& communicator) {
      EXPECT_TRUE(communicator.finalize(kCall));
      const auto after = communicator.barrier(kCall);
      ASSERT_FALSE(after);
      EXPECT_EQ(after.error().message, "barrier: the communicator is finalized");
      EXPECT_FALSE(communicator.failure());
    });
  }
  EXPECT_EQ(test::count_own("fd"), fds);
  EXPECT_EQ(test::count_own("task"), threads);
}

}  // namespace
}  // namespace hvd
