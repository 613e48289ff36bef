// RotaryTable(positions[R], inverse_frequencies[D / 2]) -> rotary[R, D], cosines then sines
// RotaryEmbedding(x[R, heads, D], rotary[R, D]) -> x rotated, pairs (i, i + D / 2)
#include <cstring>

#include "operators/onnxruntime/operator.h"

namespace sapwood::ort {
namespace {

class RotaryTable final : public Kernel {
 public:
  enum Input : size_t { kPositions, kFrequencies };
  static constexpr Port kInputs[] = {{"positions", kIndex}, {"inverse_frequencies", kFloat}};
  static constexpr Port kOutputs[] = {{"rotary", kFloat}};

  static Result<std::unique_ptr<Kernel>> create(const KernelSetup&) {
    return std::unique_ptr<Kernel>(std::make_unique<RotaryTable>());
  }

  Status compute(KernelCall& call, Resources&) override {
    Tensor positions, frequencies;
    float* rotary = nullptr;
    SAPWOOD_TRY(call.read(kPositions, {kAny}, &positions));
    SAPWOOD_TRY(call.read(kFrequencies, {kAny}, &frequencies));
    const int64_t half = frequencies.shape[0];
    SAPWOOD_TRY(call.write(0, {positions.shape[0], 2 * half}, &rotary));
    rotary_table({positions.as<int32_t>(), static_cast<size_t>(positions.shape[0])},
                 {frequencies.as<float>(), static_cast<size_t>(half)}, rotary);
    return Status::okay();
  }

  static Status infer(const Attributes&, ShapeInference& shapes) {
    SAPWOOD_TRY(shapes.expect(kPositions, {kAny}));
    SAPWOOD_TRY(shapes.expect(kFrequencies, {kAny}));
    Dim head_dim;
    if (const int64_t half = shapes.dim(kFrequencies, 0).size; half != kAny) head_dim = 2 * half;
    return shapes.set_output(0, {shapes.dim(kPositions, 0), head_dim});
  }
};

class RotaryEmbedding final : public Kernel {
 public:
  enum Input : size_t { kX, kRotary };
  static constexpr Port kInputs[] = {{"x", kFloat}, {"rotary", kFloat}};
  static constexpr Port kOutputs[] = {{"y", kFloat}};

  static Result<std::unique_ptr<Kernel>> create(const KernelSetup&) {
    return std::unique_ptr<Kernel>(std::make_unique<RotaryEmbedding>());
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor x, rotary;
    float* y = nullptr;
    SAPWOOD_TRY(call.read(kX, {kAny, kAny, kAny}, &x));
    SAPWOOD_TRY(call.read(kRotary, {x.shape[0], x.shape[2]}, &rotary));
    const int head_dim = static_cast<int>(x.shape[2]);
    if (head_dim % 16 != 0) {
      return Status(Code::kInvalidArgument, "input 'x' has heads of " + std::to_string(head_dim) +
                                                " values, not a multiple of 16");
    }
    SAPWOOD_TRY(call.write(0, x.shape, &y));
    const int heads = static_cast<int>(x.shape[1]);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      const auto [begin, end] = team.share(static_cast<int>(x.shape[0]) * heads, thread);
      for (int item = begin; item < end; ++item) {
        const size_t offset = static_cast<size_t>(item) * head_dim;
        if (y != x.data) std::memcpy(y + offset, x.as<float>() + offset, head_dim * sizeof(float));
        kernels().rotate(y + offset,
                         rotary.as<float>() + static_cast<size_t>(item / heads) * head_dim,
                         head_dim);
      }
    });
    return Status::okay();
  }

  static Status infer(const Attributes&, ShapeInference& shapes) {
    SAPWOOD_TRY(shapes.expect(kX, {kAny, kAny, kAny}));
    SAPWOOD_TRY(shapes.expect(kRotary, {shapes.dim(kX, 0).size, shapes.dim(kX, 2).size}));
    return shapes.copy_shape(kX, 0);
  }
};

}  // namespace

const OperatorDefinition kRotaryTable = {"RotaryTable", RotaryTable::kInputs, RotaryTable::kOutputs,
                                         false,         RotaryTable::create,  RotaryTable::infer};

const OperatorDefinition kRotaryEmbedding = {"RotaryEmbedding",         RotaryEmbedding::kInputs,
                                             RotaryEmbedding::kOutputs, true,
                                             RotaryEmbedding::create,   RotaryEmbedding::infer};

}  // namespace sapwood::ort
