// What an operator is to ONNX Runtime: a definition (names, types, two functions) behind the table
// of callbacks that its C interface asks for.
//
//   1. Shape inference: `infer` is called with shapes that may be partly unknown.
//   2. Session creation: `create` reads the attributes and makes a Kernel.
//   3. Each run: Kernel::compute, with the resources of the session held.
//
// An error from `infer` does not stop a session from being created, so `create` and compute check
// everything again. No exception leaves a callback.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <span>

#include "base/status.h"
#include "operators/onnxruntime/kernel_call.h"
#include "operators/onnxruntime/kernel_setup.h"
#include "operators/onnxruntime/shape_inference.h"
#include "operators/resources.h"

namespace sapwood::ort {

inline constexpr char kDomain[] = "com.endpoint.ai";

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status compute(KernelCall& call, Resources& resources) = 0;
};

struct OperatorDefinition {
  const char* name;
  std::span<const Port> inputs;
  std::span<const Port> outputs;
  bool first_in_place;  // output 0 may take the memory of input 0
  Result<std::unique_ptr<Kernel>> (*create)(const KernelSetup& setup);
  Status (*infer)(const Attributes& attributes, ShapeInference& shapes);
};

// One per operator of the contract, in its own file.
extern const OperatorDefinition kTokenEmbedding;
extern const OperatorDefinition kRotaryTable;
extern const OperatorDefinition kRmsNorm;
extern const OperatorDefinition kRotaryEmbedding;
extern const OperatorDefinition kQuantizedLinear;
extern const OperatorDefinition kGatedLinear;
extern const OperatorDefinition kTreeAttention;
extern const OperatorDefinition kDecoderLayer;
extern const OperatorDefinition kOutputHead;
extern const OperatorDefinition kDynamicTreePrune;
extern const OperatorDefinition kBlockSparseVerify;

// The table of callbacks of one definition.
struct Operator : OrtCustomOp {
  Operator(const OrtApi& api, const OperatorDefinition& definition,
           std::shared_ptr<Resources> resources);

  const OrtApi& api;
  const OperatorDefinition& definition;
  const std::shared_ptr<Resources> resources;  // null: by the session's configuration
};

// All operators, with the domain that holds them. Must outlive every session that uses it.
class OperatorSet {
 public:
  // With `resources`, every session uses those; without, sessions share one team per number of
  // threads, which their configuration entry "sapwood.threads" gives.
  static Result<std::unique_ptr<OperatorSet>> create(const OrtApi& api,
                                                     std::shared_ptr<Resources> resources);
  ~OperatorSet();
  OperatorSet(const OperatorSet&) = delete;
  OperatorSet& operator=(const OperatorSet&) = delete;

  OrtCustomOpDomain* domain() const { return domain_; }

 private:
  explicit OperatorSet(const OrtApi& api) : api_(api) {}

  const OrtApi& api_;
  std::vector<std::unique_ptr<Operator>> operators_;
  OrtCustomOpDomain* domain_ = nullptr;
};

}  // namespace sapwood::ort
