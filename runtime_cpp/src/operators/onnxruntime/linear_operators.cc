// QuantizedLinear(x[R, K], weight) {format, outputs, inputs} -> [R, outputs]
// GatedLinear(x[R, K], gate_up) {format, intermediate, inputs, activation} -> [R, intermediate]
#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/weights.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kX, kWeight };

constexpr Port kOutputs[] = {{"y", kFloat}};

// Quantises this member's share of the rows, as the first half of a linear.
void quantize_share(const Tensor& x, const QuantizedRows& out, ThreadTeam& team, int thread) {
  const auto [begin, end] = team.share(static_cast<int>(x.shape[0]), thread);
  kernels().quantize_rows(x.as<float>(), out.inputs, out.inputs, begin, end, out);
  team.barrier();
}

class QuantizedLinear final : public Kernel {
 public:
  static constexpr Port kInputs[] = {{"x", kFloat}, {"weight", kBytes}};

  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<QuantizedLinear>();
    LinearWeights matrix;
    SAPWOOD_TRY(read_settings(setup.attributes(), &matrix));
    SAPWOOD_TRY(kernel->weight_.prepare(setup, kWeight, matrix));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor x;
    LinearWeights weight;
    float* y = nullptr;
    SAPWOOD_TRY(weight_.resolve(call, &weight));
    SAPWOOD_TRY(call.read(kX, {kAny, weight.inputs}, &x));
    SAPWOOD_TRY(call.write(0, {x.shape[0], weight.outputs}, &y));
    const int rows = static_cast<int>(x.shape[0]);
    if (rows == 0) return Status::okay();
    const QuantizedRows quantized = resources.quantized_rows(rows, weight.inputs);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      quantize_share(x, quantized, team, thread);
      const auto [begin, end] = team.share(weight.panels(), thread);
      kernels().linear(weight, quantized, rows, begin, end, false, y, weight.outputs);
    });
    return Status::okay();
  }

  static Status infer(const Attributes& attributes, ShapeInference& shapes) {
    LinearWeights matrix;
    SAPWOOD_TRY(read_settings(attributes, &matrix));
    SAPWOOD_TRY(shapes.expect(kX, {kAny, matrix.inputs}));
    SAPWOOD_TRY(shapes.expect(kWeight, {static_cast<int64_t>(matrix.bytes())}));
    return shapes.set_output(0, {shapes.dim(kX, 0), matrix.outputs});
  }

 private:
  static Status read_settings(const Attributes& attributes, LinearWeights* matrix) {
    LinearFormat format;
    int outputs = 0;
    int inputs = 0;
    SAPWOOD_TRY(attributes.linear_format("format", &format));
    SAPWOOD_TRY(attributes.integer("outputs", 1, &outputs));
    SAPWOOD_TRY(attributes.integer("inputs", 1, &inputs));
    return describe_matrix(format, outputs, inputs, matrix);
  }

  PackedInput weight_;
};

class GatedLinear final : public Kernel {
 public:
  static constexpr Port kInputs[] = {{"x", kFloat}, {"gate_up", kBytes}};

  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<GatedLinear>();
    LinearWeights matrix;
    SAPWOOD_TRY(read_settings(setup.attributes(), &matrix, &kernel->activation_));
    SAPWOOD_TRY(kernel->gate_up_.prepare(setup, kWeight, matrix));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor x;
    LinearWeights gate_up;
    float* y = nullptr;
    SAPWOOD_TRY(gate_up_.resolve(call, &gate_up));
    SAPWOOD_TRY(call.read(kX, {kAny, gate_up.inputs}, &x));
    const int intermediate = gate_up.outputs / 2;
    SAPWOOD_TRY(call.write(0, {x.shape[0], intermediate}, &y));
    const int rows = static_cast<int>(x.shape[0]);
    if (rows == 0) return Status::okay();
    const QuantizedRows quantized = resources.quantized_rows(rows, gate_up.inputs);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      quantize_share(x, quantized, team, thread);
      const auto [begin, end] = team.share(intermediate / kPanel, thread);
      kernels().gated_linear(gate_up, quantized, rows, begin, end, activation_, y, intermediate);
    });
    return Status::okay();
  }

  static Status infer(const Attributes& attributes, ShapeInference& shapes) {
    LinearWeights matrix;
    Activation activation;
    SAPWOOD_TRY(read_settings(attributes, &matrix, &activation));
    SAPWOOD_TRY(shapes.expect(kX, {kAny, matrix.inputs}));
    SAPWOOD_TRY(shapes.expect(kWeight, {static_cast<int64_t>(matrix.bytes())}));
    return shapes.set_output(0, {shapes.dim(kX, 0), matrix.outputs / 2});
  }

 private:
  static Status read_settings(const Attributes& attributes, LinearWeights* matrix,
                              Activation* activation) {
    LinearFormat format;
    int intermediate = 0;
    int inputs = 0;
    SAPWOOD_TRY(attributes.linear_format("format", &format));
    SAPWOOD_TRY(attributes.integer("intermediate", 1, &intermediate));
    SAPWOOD_TRY(attributes.integer("inputs", 1, &inputs));
    SAPWOOD_TRY(attributes.activation("activation", activation));
    return describe_gate_up(format, intermediate, inputs, matrix);
  }

  PackedInput gate_up_;
  Activation activation_ = Activation::kSilu;
};

}  // namespace

const OperatorDefinition kQuantizedLinear = {
    "QuantizedLinear",       QuantizedLinear::kInputs, kOutputs, false,
    QuantizedLinear::create, QuantizedLinear::infer};

const OperatorDefinition kGatedLinear = {"GatedLinear", GatedLinear::kInputs, kOutputs,
                                         false,         GatedLinear::create,  GatedLinear::infer};

}  // namespace sapwood::ort
