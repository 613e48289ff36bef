// RmsNorm(x[R, n] or [R, heads, n], weight[n]) {epsilon} -> x normed over its last axis
#include "operators/onnxruntime/operator.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kX, kWeight };

constexpr Port kInputs[] = {{"x", kFloat}, {"weight", kFloat}};
constexpr Port kOutputs[] = {{"y", kFloat}};

Status wrong_rank(size_t rank) {
  return Status(Code::kInvalidArgument,
                "input 'x' has " + std::to_string(rank) + " axes, not 2 or 3");
}

class RmsNorm final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<RmsNorm>();
    SAPWOOD_TRY(setup.attributes().real("epsilon", &kernel->epsilon_));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor x, weight;
    float* y = nullptr;
    SAPWOOD_TRY(call.read(kX, &x));
    if (x.shape.size() != 2 && x.shape.size() != 3) return wrong_rank(x.shape.size());
    SAPWOOD_TRY(call.read(kWeight, {x.shape.back()}, &weight));
    SAPWOOD_TRY(call.write(0, x.shape, &y));
    const int columns = static_cast<int>(x.shape.back());
    const int rows = columns == 0 ? 0 : static_cast<int>(x.elements() / columns);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      const auto [begin, end] = team.share(rows, thread);
      const size_t offset = static_cast<size_t>(begin) * columns;
      kernels().rms_norm(x.as<float>() + offset, columns, weight.as<float>(), epsilon_, end - begin,
                         columns, y + offset, columns);
    });
    return Status::okay();
  }

 private:
  float epsilon_ = 0.f;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  float epsilon = 0.f;
  SAPWOOD_TRY(attributes.real("epsilon", &epsilon));
  if (!shapes.has_shape(kX)) return Status::okay();
  const size_t rank = shapes.rank(kX);
  if (rank != 2 && rank != 3) return wrong_rank(rank);
  SAPWOOD_TRY(shapes.expect(kWeight, {shapes.dim(kX, rank - 1).size}));
  return shapes.copy_shape(kX, 0);
}

}  // namespace

const OperatorDefinition kRmsNorm = {"RmsNorm", kInputs, kOutputs, true, RmsNorm::create, infer};

}  // namespace sapwood::ort
