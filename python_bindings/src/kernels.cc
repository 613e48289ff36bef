// The kernel tables, one function at a time: for twins of the C++ tests and for benchmarks.

#include "kernels/kernels.h"

#include <algorithm>
#include <cstdlib>

#include "bindings.h"
#include "memory/kv_store.h"

namespace sapwood::python {
namespace {

// Packed weights in memory of our own, because Python's arrays are not 64-byte aligned.
class PackedLinear {
 public:
  PackedLinear(const ByteVector& data, int outputs, int inputs, std::string_view format_name) {
    const std::optional<LinearFormat> format = parse_linear_format(format_name);
    if (!format) raise_invalid("unknown weight format \"" + std::string(format_name) + "\"");
    if (outputs < 1 || inputs < 1 || inputs % format->group != 0) {
      raise_invalid("inputs must be a positive multiple of the format's group of " +
                    std::to_string(format->group) + ", outputs positive");
    }
    weights_ = {nullptr, outputs, inputs, *format};
    if (data.size() != weights_.bytes()) {
      raise_invalid("packed weights of this shape hold " + std::to_string(weights_.bytes()) +
                    " bytes, not " + std::to_string(data.size()));
    }
    const size_t rounded = (data.size() + 63) / 64 * 64;
    memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, rounded)));
    if (memory_ == nullptr) raise_invalid("out of memory for packed weights");
    std::memcpy(memory_.get(), data.data(), data.size());
    weights_.data = memory_.get();
  }

  const LinearWeights& weights() const { return weights_; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t[], Free> memory_;
  LinearWeights weights_;
};

// QuantizedRows that own their memory.
struct Activations {
  Activations(const KernelTable& table, const FloatMatrix& x)
      : rows(static_cast<int>(x.shape(0))), inputs(static_cast<int>(x.shape(1))) {
    if (inputs % kActivationGroup != 0) raise_invalid("columns must be a multiple of 32");
    const size_t groups = static_cast<size_t>(rows) * (inputs / kActivationGroup);
    codes.resize(static_cast<size_t>(rows) * inputs);
    scales.resize(groups);
    sums.resize(groups);
    scaled_sums.resize(groups);
    view = {codes.data(), scales.data(), sums.data(), scaled_sums.data(), inputs};
    table.quantize_rows(x.data(), inputs, inputs, 0, rows, view);
  }

  int rows;
  int inputs;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> sums;
  std::vector<float> scaled_sums;
  QuantizedRows view;
};

NumpyArray<float, 2> run_linear(const KernelTable& table, const PackedLinear& packed,
                                const FloatMatrix& x) {
  const LinearWeights& weights = packed.weights();
  if (static_cast<int>(x.shape(1)) != weights.inputs) raise_invalid("x must be [rows, inputs]");
  const Activations activations(table, x);
  auto y = new_array<float>(activations.rows, weights.outputs);
  nb::gil_scoped_release unlocked;
  table.linear(weights, activations.view, activations.rows, 0, weights.panels(), false, y.data(),
               weights.outputs);
  return y;
}

Activation parse_activation(std::string_view name) {
  if (name == "silu") return Activation::kSilu;
  if (name == "gelu_tanh") return Activation::kGeluTanh;
  raise_invalid("activation must be \"silu\" or \"gelu_tanh\"");
}

NumpyArray<float, 2> run_gated_linear(const KernelTable& table, const PackedLinear& packed,
                                      const FloatMatrix& x, std::string_view activation_name) {
  const Activation activation = parse_activation(activation_name);
  const LinearWeights& weights = packed.weights();
  if (static_cast<int>(x.shape(1)) != weights.inputs) raise_invalid("x must be [rows, inputs]");
  if (weights.outputs % (2 * kPanel) != 0) raise_invalid("outputs must be a multiple of 32");
  const Activations activations(table, x);
  auto y = new_array<float>(activations.rows, weights.outputs / 2);
  nb::gil_scoped_release unlocked;
  table.gated_linear(weights, activations.view, activations.rows, 0, weights.panels() / 2,
                     activation, y.data(), weights.outputs / 2);
  return y;
}

using Quantized = std::tuple<NumpyArray<int8_t, 2>, NumpyArray<float, 2>, NumpyArray<int32_t, 2>>;

Quantized run_quantize(const KernelTable& table, const FloatMatrix& x) {
  const Activations activations(table, x);
  const int rows = activations.rows, groups = activations.inputs / kActivationGroup;
  auto codes = new_array<int8_t>(rows, activations.inputs);
  auto scales = new_array<float>(rows, groups);
  auto sums = new_array<int32_t>(rows, groups);
  std::copy(activations.codes.begin(), activations.codes.end(), codes.data());
  std::copy(activations.scales.begin(), activations.scales.end(), scales.data());
  std::copy(activations.sums.begin(), activations.sums.end(), sums.data());
  return {codes, scales, sums};
}

const KernelTable& find_table(std::string_view name) {
  for (const KernelTable* table : runnable_kernels()) {
    if (table->name == name) return *table;
  }
  raise_invalid("this machine cannot run kernels \"" + std::string(name) + "\"");
}

std::vector<int> row_counts(std::span<const RowBlock> blocks) {
  std::vector<int> rows;
  for (const RowBlock& block : blocks) rows.push_back(block.rows);
  return rows;
}

std::vector<int> rows_by_plan(const RowPlan& plan, std::span<const RowBlock> blocks) {
  std::vector<int> rows;
  for (int left = 1; left <= RowPlan::kRows; ++left) rows.push_back(blocks[plan.block(left)].rows);
  return rows;
}

std::vector<int> measured_plan(const KernelTable& table, std::string_view format_name) {
  const std::optional<LinearFormat> format = parse_linear_format(format_name);
  if (!format) raise_invalid("unknown weight format \"" + std::string(format_name) + "\"");
  return rows_by_plan(measured_row_plan(table, *format), table.row_blocks);
}

// blocks by rising rows, the first of one; each of one panel, which says nothing about the plan.
std::vector<int> cheapest_plan(const std::vector<int>& rows, const std::vector<double>& costs) {
  std::vector<RowBlock> blocks;
  for (const int count : rows) {
    if (count < 1 || count > RowPlan::kRows) raise_invalid("a block has 1 to 64 rows");
    blocks.push_back({static_cast<uint8_t>(count), 1});
  }
  if (rows.empty() || rows.front() != 1 || !std::is_sorted(rows.begin(), rows.end()) ||
      rows.size() > 255 || costs.size() != rows.size()) {
    raise_invalid("blocks must rise from 1 row, at most 255 of them, each with a cost");
  }
  for (const double cost : costs) {
    if (!(cost > 0)) raise_invalid("a block's cost must be above 0");
  }
  return rows_by_plan(RowPlan::cheapest(blocks, costs), blocks);
}

}  // namespace

void bind_kernels(nb::module_& module) {
  nb::class_<PackedLinear>(module, "PackedLinear",
                           "Weights of one linear layer in the packed layout of kernels/linear.h.")
      .def(nb::init<const ByteVector&, int, int, std::string_view>(), nb::arg("data"),
           nb::arg("outputs"), nb::arg("inputs"), nb::arg("format"),
           "Copies `data`, uint8 [bytes]. `format` is \"int4_g32\", \"int8_g32\", ...")
      .def_prop_ro("outputs", [](const PackedLinear& self) { return self.weights().outputs; })
      .def_prop_ro("inputs", [](const PackedLinear& self) { return self.weights().inputs; })
      .def_prop_ro("format", [](const PackedLinear& self) {
        return std::string(linear_format_name(self.weights().format));
      });

  nb::class_<KernelTable>(module, "KernelTable",
                          "The kernels of one instruction set. All give the same bits.")
      .def_prop_ro("name", [](const KernelTable& self) { return std::string(self.name); })
      .def_prop_ro(
          "row_blocks", [](const KernelTable& self) { return row_counts(self.row_blocks); },
          "Rows of the blocks that linear layers have loops for, rising from 1.")
      .def("row_plan", &measured_plan, nb::arg("format"),
           "For 1, 2, ... 64 rows left, the rows of the block they begin with: what is cheapest on "
           "this machine for weights of this format. Measured when first asked for.")
      .def(
          "linear", &run_linear, nb::arg("weights"), nb::arg("x"),
          "x [rows, inputs] in float32 -> [rows, outputs]; x is quantised to int8 by groups of 32.")
      .def("gated_linear", &run_gated_linear, nb::arg("weights"), nb::arg("x"),
           nb::arg("activation") = "silu",
           "activation(gate) * up for gate and up interleaved by 16: [rows, outputs / 2].")
      .def("quantize_rows", &run_quantize, nb::arg("x"),
           "(codes int8 [rows, columns], scales float32 and sums int32 [rows, columns / 32]).")
      .def(
          "rms_norm",
          [](const KernelTable& self, const FloatMatrix& x, const FloatVector& weight,
             float epsilon) {
            const int rows = static_cast<int>(x.shape(0)), columns = static_cast<int>(x.shape(1));
            if (weight.size() != x.shape(1)) raise_invalid("weight must be [columns]");
            auto out = new_array<float>(rows, columns);
            self.rms_norm(x.data(), columns, weight.data(), epsilon, rows, columns, out.data(),
                          columns);
            return out;
          },
          nb::arg("x"), nb::arg("weight"), nb::arg("epsilon"),
          "weight * x / sqrt(mean(x^2) + epsilon) over each row of x [rows, columns].")
      .def(
          "embed",
          [](const KernelTable& self, const PackedLinear& table, int token, float scale) {
            if (token < 0 || token >= table.weights().outputs) raise_invalid("no such token");
            auto out = new_array<float>(table.weights().inputs);
            self.embed(table.weights(), token, scale, out.data());
            return out;
          },
          nb::arg("table"), nb::arg("token"), nb::arg("scale") = 1.f,
          "One row of a packed table as float32 [inputs], times `scale`.")
      .def(
          "log_softmax",
          [](const KernelTable& self, const FloatVector& logits) {
            auto out = new_array<float>(logits.size());
            self.log_softmax(logits.data(), static_cast<int>(logits.size()), out.data());
            return out;
          },
          nb::arg("logits"), "Natural logarithms, [n] -> [n].");

  module.def("cheapest_row_plan", &cheapest_plan, nb::arg("rows"), nb::arg("costs"),
             "The block that 1, 2, ... 64 rows begin with, if a block of rows[i] costs costs[i].");
  module.def(
      "runnable_kernels",
      [] {
        std::vector<std::string> names;
        for (const KernelTable* table : runnable_kernels()) names.emplace_back(table->name);
        return names;
      },
      "Names of the kernel tables this machine can run, the scalar one first, the best last.");
  module.def("kernels", &find_table, nb::arg("name"), nb::rv_policy::reference,
             "The table of that name. Raises SapwoodError if this machine cannot run it.");
  module.def(
      "active_kernels", [] { return std::string(kernels().name); },
      "The table in use: the best, or the one set by set_kernels or SAPWOOD_KERNELS.");
  module.def("set_kernels", &set_kernels, nb::arg("name"),
             "Chooses a table for models opened from now on; False if it cannot be run here.");
  module.def(
      "rotary_table",
      [](const std::vector<int32_t>& positions, const FloatVector& inverse_frequencies) {
        const size_t half = inverse_frequencies.size();
        auto out = new_array<float>(positions.size(), 2 * half);
        rotary_table(positions, {inverse_frequencies.data(), half}, out.data());
        return out;
      },
      nb::arg("positions"), nb::arg("inverse_frequencies"),
      "[rows, head_dim]: cosines, then sines, of position * inverse frequency.");
}

}  // namespace sapwood::python
