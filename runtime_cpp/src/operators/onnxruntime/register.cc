// The one symbol of libsapwood_onnxruntime.so, which ONNX Runtime calls for
// SessionOptions.register_custom_ops_library(path) and RegisterCustomOpsLibrary.
#include <onnxruntime_c_api.h>

#include <exception>
#include <memory>

#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/ort_status.h"

namespace {

using sapwood::Result;
using sapwood::ort::OperatorSet;

// Made once: the operators hold no state of a session, and ONNX Runtime keeps pointers to them for
// as long as it keeps the library.
const Result<std::unique_ptr<OperatorSet>>& operators(const OrtApi& api) {
  static const Result<std::unique_ptr<OperatorSet>> set = OperatorSet::create(api, nullptr);
  return set;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* ORT_API_CALL
RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(sapwood::ort::kApiVersion);
  if (api == nullptr) {
    const OrtApi* oldest = base->GetApi(1);
    return oldest->CreateStatus(
        ORT_NOT_IMPLEMENTED,
        "sapwood's operators need ONNX Runtime 1.24 or later: upgrade it (pip: onnxruntime)");
  }
  try {
    const Result<std::unique_ptr<OperatorSet>>& set = operators(*api);
    if (!set.ok()) return sapwood::ort::give_status(*api, set.status());
    return api->AddCustomOpDomain(options, set.value()->domain());
  } catch (const std::exception& error) {
    return api->CreateStatus(ORT_RUNTIME_EXCEPTION, error.what());
  }
}
