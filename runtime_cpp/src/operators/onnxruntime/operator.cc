#include "operators/onnxruntime/operator.h"

#include <charconv>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

#include "operators/onnxruntime/ort_status.h"

namespace sapwood::ort {
namespace {

constexpr int kMostThreads = 256;

Status with_prefix(const Status& status, const std::string& prefix) {
  if (status.ok()) return status;
  return Status(status.code(), prefix + ": " + status.message());
}

std::string full_name(const OperatorDefinition& definition) {
  return std::string(kDomain) + "." + definition.name;
}

// Runs `body` and gives ONNX Runtime its error, or that of an exception, which must not get out.
template <typename Body>
OrtStatus* guarded(const Operator& op, Body&& body) {
  try {
    return give_status(op.api, with_prefix(body(), full_name(op.definition)));
  } catch (const std::exception& error) {
    return op.api.CreateStatus(ORT_RUNTIME_EXCEPTION, error.what());
  } catch (...) {
    return op.api.CreateStatus(ORT_RUNTIME_EXCEPTION, "sapwood: unknown exception");
  }
}

Result<int> parse_threads(std::string_view text, const char* where) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 ||
      threads > kMostThreads) {
    return Status(Code::kInvalidArgument, std::string(where) + " is '" + std::string(text) +
                                              "', not a number of threads from 1 to " +
                                              std::to_string(kMostThreads));
  }
  return threads;
}

// The session's configuration entry "sapwood.threads", else the environment's SAPWOOD_THREADS, else
// as many as there are processors.
Result<int> threads_of_session(const OrtApi& api, const OrtKernelInfo* info) {
  OrtKeyValuePairs* entries = nullptr;
  SAPWOOD_TRY_ORT(api, api.KernelInfo_GetConfigEntries(info, &entries));
  const std::unique_ptr<OrtKeyValuePairs, decltype(api.ReleaseKeyValuePairs)> owner(
      entries, api.ReleaseKeyValuePairs);
  if (const char* entry = api.GetKeyValue(entries, "sapwood.threads")) {
    return parse_threads(entry, "the session's entry 'sapwood.threads'");
  }
  if (const char* variable = std::getenv("SAPWOOD_THREADS")) {
    return parse_threads(variable, "the environment variable SAPWOOD_THREADS");
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string node_name(const OrtApi& api, const OrtKernelInfo* info) {
  size_t size = 0;
  std::string name;
  OrtStatus* status = api.KernelInfo_GetNodeName(info, nullptr, &size);
  if (status == nullptr && size > 1) {
    name.resize(size);
    status = api.KernelInfo_GetNodeName(info, name.data(), &size);
    name.resize(size - 1);
  }
  if (status != nullptr) api.ReleaseStatus(status);
  return name;
}

// A kernel with what its callbacks need.
struct BoundKernel {
  const Operator& op;
  std::shared_ptr<Resources> resources;
  std::unique_ptr<Kernel> kernel;
};

Status create_kernel(const Operator& op, const OrtKernelInfo* info, void** out) {
  auto bound = std::make_unique<BoundKernel>(BoundKernel{op, op.resources, nullptr});
  if (bound->resources == nullptr) {
    const Result<int> threads = threads_of_session(op.api, info);
    if (!threads.ok()) return threads.status();
    bound->resources = operators::shared_resources(threads.value());
  }
  const KernelSetup setup(op.api, info, op.definition.inputs);
  Result<std::unique_ptr<Kernel>> kernel = op.definition.create(setup);
  if (!kernel.ok()) {
    return with_prefix(kernel.status(), "node '" + node_name(op.api, info) + "'");
  }
  bound->kernel = std::move(kernel).value();
  *out = bound.release();
  return Status::okay();
}

const Operator& self(const OrtCustomOp* op) { return *static_cast<const Operator*>(op); }

OrtCustomOpInputOutputCharacteristic characteristic(const Port& port) {
  return port.optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

size_t first_may_take_first(int** inputs, int** outputs) {
  static int zero = 0;
  *inputs = &zero;
  *outputs = &zero;
  return 1;
}

void keep_indices(int*, int*) {}  // static ones

}  // namespace

Operator::Operator(const OrtApi& ort_api, const OperatorDefinition& operator_definition,
                   std::shared_ptr<Resources> session_resources)
    : OrtCustomOp{},
      api(ort_api),
      definition(operator_definition),
      resources(std::move(session_resources)) {
  OrtCustomOp::version = kApiVersion;
  GetName = [](const OrtCustomOp* op) { return self(op).definition.name; };
  GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };  // the CPU
  GetInputTypeCount = [](const OrtCustomOp* op) { return self(op).definition.inputs.size(); };
  GetInputType = [](const OrtCustomOp* op, size_t i) { return self(op).definition.inputs[i].type; };
  GetInputCharacteristic = [](const OrtCustomOp* op, size_t i) {
    return characteristic(self(op).definition.inputs[i]);
  };
  GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  GetOutputTypeCount = [](const OrtCustomOp* op) { return self(op).definition.outputs.size(); };
  GetOutputType = [](const OrtCustomOp* op, size_t i) {
    return self(op).definition.outputs[i].type;
  };
  GetOutputCharacteristic = [](const OrtCustomOp* op, size_t i) {
    return characteristic(self(op).definition.outputs[i]);
  };
  // None is variadic; ONNX Runtime asks all the same.
  GetVariadicInputMinArity = [](const OrtCustomOp*) { return 1; };
  GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 1; };
  GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 1; };
  GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 1; };
  GetStartVersion = [](const OrtCustomOp*) { return 1; };
  GetEndVersion = [](const OrtCustomOp*) { return 1; };
  if (definition.first_in_place) {
    GetMayInplace = first_may_take_first;
    ReleaseMayInplace = keep_indices;
  }
  CreateKernelV2 = [](const OrtCustomOp* op, const OrtApi*, const OrtKernelInfo* info,
                      void** kernel) {
    return guarded(self(op), [&] { return create_kernel(self(op), info, kernel); });
  };
  KernelComputeV2 = [](void* kernel, OrtKernelContext* context) {
    BoundKernel& bound = *static_cast<BoundKernel*>(kernel);
    return guarded(bound.op, [&] {
      const std::lock_guard lock(bound.resources->mutex());
      KernelCall call(bound.op.api, context, bound.op.definition.inputs,
                      bound.op.definition.outputs);
      return bound.kernel->compute(call, *bound.resources);
    });
  };
  KernelDestroy = [](void* kernel) { delete static_cast<BoundKernel*>(kernel); };
  InferOutputShapeFn = [](const OrtCustomOp* op, OrtShapeInferContext* context) {
    return guarded(self(op), [&]() -> Status {
      ShapeInference shapes;
      SAPWOOD_TRY(ShapeInference::open(self(op).api, context, self(op).definition.inputs,
                                       self(op).definition.outputs, &shapes));
      const InferenceAttributes attributes(self(op).api, context);
      return self(op).definition.infer(attributes, shapes);
    });
  };
}

Result<std::unique_ptr<OperatorSet>> OperatorSet::create(const OrtApi& api,
                                                         std::shared_ptr<Resources> resources) {
  std::unique_ptr<OperatorSet> set(new OperatorSet(api));
  SAPWOOD_TRY_ORT(api, api.CreateCustomOpDomain(kDomain, &set->domain_));
  for (const OperatorDefinition* definition :
       {&kTokenEmbedding, &kRotaryTable, &kRmsNorm, &kRotaryEmbedding, &kQuantizedLinear,
        &kGatedLinear, &kTreeAttention, &kDecoderLayer, &kOutputHead, &kDynamicTreePrune,
        &kBlockSparseVerify}) {
    set->operators_.push_back(std::make_unique<Operator>(api, *definition, resources));
    SAPWOOD_TRY_ORT(api, api.CustomOpDomain_Add(set->domain_, set->operators_.back().get()));
  }
  return set;
}

OperatorSet::~OperatorSet() {
  if (domain_ != nullptr) api_.ReleaseCustomOpDomain(domain_);
}

}  // namespace sapwood::ort
