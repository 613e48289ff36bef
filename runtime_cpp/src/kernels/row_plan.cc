#include "kernels/row_plan.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "kernels/linear.h"

namespace sapwood {
namespace {

// A layer that stays in the first cache with its rows, like the part of a real one in use.
constexpr int kInputs = 512;  // a multiple of 128
constexpr int kOutputs = 4 * kPanel;
constexpr int kRounds = 40;  // the shortest counts: whatever else the machine does only adds
constexpr int kRepeats = 2;  // calls a round, of a microsecond and more

class Trial {
 public:
  Trial(const LinearFormat& format, int rows)
      : rows_(rows),
        codes_(static_cast<size_t>(rows) * kInputs, 1),
        scales_(codes_.size() / kActivationGroup, 1.0f),
        sums_(scales_.size(), kActivationGroup),
        outputs_(static_cast<size_t>(rows) * kOutputs) {
    weights_ = {nullptr, kOutputs, kInputs, format};
    memory_.resize(weights_.bytes() + 64, 0x11);
    void* data = memory_.data();
    size_t space = memory_.size();
    weights_.data = static_cast<const uint8_t*>(std::align(64, weights_.bytes(), data, space));
  }

  double seconds(const KernelTable& table, const RowPlan& plan) {
    weights_.plan = &plan;
    const QuantizedRows x{codes_.data(), scales_.data(), sums_.data(), scales_.data(), kInputs};
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kRepeats; ++i) {
      table.linear(weights_, x, rows_, 0, weights_.panels(), false, outputs_.data(), kOutputs);
    }
    return seconds_since(begin);
  }

 private:
  const int rows_;
  std::vector<int8_t> codes_;
  std::vector<float> scales_;
  std::vector<int32_t> sums_;
  std::vector<float> outputs_;
  std::vector<uint8_t> memory_;
  LinearWeights weights_;
};

RowPlan measure(const KernelTable& table, const LinearFormat& format) {
  const std::span<const RowBlock> blocks = table.row_blocks;
  std::vector<double> best(blocks.size(), std::numeric_limits<double>::max());
  if (blocks.size() > 1) {
    std::vector<Trial> trials;
    for (const RowBlock& block : blocks) trials.emplace_back(format, block.rows);
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < blocks.size(); ++i) {
        const RowPlan plan = RowPlan::single(blocks, static_cast<int>(i));
        best[i] = std::min(best[i], trials[i].seconds(table, plan));
      }
    }
  }
  return RowPlan::cheapest(blocks, best);
}

}  // namespace

RowPlan RowPlan::cheapest(std::span<const RowBlock> blocks, std::span<const double> costs) {
  RowPlan plan;
  std::array<double, kRows + 1> total{};
  for (int rows = 1; rows <= kRows; ++rows) {
    total[rows] = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].rows > rows) continue;
      const double cost = total[rows - blocks[i].rows] + costs[i];
      if (cost > total[rows]) continue;
      total[rows] = cost;
      plan.first_[rows] = static_cast<uint8_t>(i);
    }
  }
  return plan;
}

RowPlan RowPlan::single(std::span<const RowBlock> blocks, int only) {
  RowPlan plan;
  for (int rows = blocks[only].rows; rows <= kRows; ++rows) {
    plan.first_[rows] = static_cast<uint8_t>(only);
  }
  return plan;
}

const RowPlan& measured_row_plan(const KernelTable& table, const LinearFormat& format) {
  static std::mutex mutex;
  static std::map<std::string, RowPlan> plans;
  const std::string key = std::string(table.name) + " " + std::string(linear_format_name(format));
  const std::lock_guard lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  return plans.emplace(key, measure(table, format)).first->second;
}

}  // namespace sapwood
