// QuantizedLinear(x[R, K], weight) {format, outputs, inputs} -> [R, outputs]
// GatedLinear(x[R, K], gate_up) {format, intermediate, inputs, activation} -> [R, intermediate]
#include "kernels/team_share.h"
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
    Settings settings;
    SAPWOOD_TRY(read_settings(setup.attributes(), &settings));
    SAPWOOD_TRY(packed_input(setup, kWeight, settings.format, settings.outputs, settings.inputs,
                             &kernel->weight_));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor x;
    float* y = nullptr;
    SAPWOOD_TRY(call.read(kX, {kAny, weight_.inputs}, &x));
    SAPWOOD_TRY(call.write(0, {x.shape[0], weight_.outputs}, &y));
    const int rows = static_cast<int>(x.shape[0]);
    if (rows == 0) return Status::okay();
    const QuantizedRows quantized = resources.quantized_rows(rows, weight_.inputs);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      quantize_share(x, quantized, team, thread);
      const auto [begin, end] = panel_share(weight_, team, thread);
      kernels().linear(weight_, quantized, rows, begin, end, false, y, weight_.outputs);
    });
    return Status::okay();
  }

  static Status infer(const Attributes& attributes, ShapeInference& shapes) {
    Settings settings;
    SAPWOOD_TRY(read_settings(attributes, &settings));
    SAPWOOD_TRY(shapes.expect(kX, {kAny, settings.inputs}));
    return shapes.set_output(0, {shapes.dim(kX, 0), settings.outputs});
  }

 private:
  struct Settings {
    LinearFormat format;
    int outputs = 0;
    int inputs = 0;
  };

  static Status read_settings(const Attributes& attributes, Settings* settings) {
    SAPWOOD_TRY(attributes.linear_format("format", &settings->format));
    SAPWOOD_TRY(attributes.integer("outputs", 1, &settings->outputs));
    return attributes.integer("inputs", 1, &settings->inputs);
  }

  LinearWeights weight_;
};

class GatedLinear final : public Kernel {
 public:
  static constexpr Port kInputs[] = {{"x", kFloat}, {"gate_up", kBytes}};

  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<GatedLinear>();
    Settings settings;
    SAPWOOD_TRY(read_settings(setup.attributes(), &settings));
    kernel->activation_ = settings.activation;
    SAPWOOD_TRY(gate_up_input(setup, kWeight, settings.format, settings.intermediate,
                              settings.inputs, &kernel->gate_up_));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor x;
    float* y = nullptr;
    const int intermediate = gate_up_.outputs / 2;
    SAPWOOD_TRY(call.read(kX, {kAny, gate_up_.inputs}, &x));
    SAPWOOD_TRY(call.write(0, {x.shape[0], intermediate}, &y));
    const int rows = static_cast<int>(x.shape[0]);
    if (rows == 0) return Status::okay();
    const QuantizedRows quantized = resources.quantized_rows(rows, gate_up_.inputs);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      quantize_share(x, quantized, team, thread);
      const auto [begin, end] = team.share(intermediate / kPanel, thread);
      kernels().gated_linear(gate_up_, quantized, rows, begin, end, activation_, y, intermediate);
    });
    return Status::okay();
  }

  static Status infer(const Attributes& attributes, ShapeInference& shapes) {
    Settings settings;
    SAPWOOD_TRY(read_settings(attributes, &settings));
    SAPWOOD_TRY(shapes.expect(kX, {kAny, settings.inputs}));
    return shapes.set_output(0, {shapes.dim(kX, 0), settings.intermediate});
  }

 private:
  struct Settings {
    LinearFormat format;
    int intermediate = 0;
    int inputs = 0;
    Activation activation = Activation::kSilu;
  };

  static Status read_settings(const Attributes& attributes, Settings* settings) {
    SAPWOOD_TRY(attributes.linear_format("format", &settings->format));
    SAPWOOD_TRY(attributes.integer("intermediate", 1, &settings->intermediate));
    SAPWOOD_TRY(attributes.integer("inputs", 1, &settings->inputs));
    return attributes.activation("activation", &settings->activation);
  }

  LinearWeights gate_up_;
  Activation activation_ = Activation::kSilu;
};

}  // namespace

const OperatorDefinition kQuantizedLinear = {
    "QuantizedLinear",       QuantizedLinear::kInputs, kOutputs, false,
    QuantizedLinear::create, QuantizedLinear::infer};

const OperatorDefinition kGatedLinear = {"GatedLinear", GatedLinear::kInputs, kOutputs,
                                         false,         GatedLinear::create,  GatedLinear::infer};

}  // namespace sapwood::ort
