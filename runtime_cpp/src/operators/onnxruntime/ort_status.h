// Between our Status and ONNX Runtime's.
//
// The C interface is used throughout, so that nothing of ONNX Runtime is linked and nothing throws.
// Everything called exists since version 1.24; asking for that version lets any later runtime
// serve.
#pragma once

#include <onnxruntime_c_api.h>

#include <string>
#include <utility>

#include "base/status.h"

namespace sapwood::ort {

inline constexpr uint32_t kApiVersion = 24;

// Takes `status` over. The message is cut at its first line end: it is shown as one line.
inline Status take_status(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return Status::okay();
  std::string message = api.GetErrorMessage(status);
  const OrtErrorCode code = api.GetErrorCode(status);
  api.ReleaseStatus(status);
  if (const size_t end = message.find('\n'); end != std::string::npos) message.resize(end);
  switch (code) {
    case ORT_INVALID_ARGUMENT:
      return Status(Code::kInvalidArgument, std::move(message));
    case ORT_NO_SUCHFILE:
    case ORT_NO_MODEL:
      return Status(Code::kNotFound, std::move(message));
    case ORT_INVALID_PROTOBUF:
    case ORT_INVALID_GRAPH:
      return Status(Code::kCorrupt, std::move(message));
    case ORT_NOT_IMPLEMENTED:
      return Status(Code::kUnsupported, std::move(message));
    default:
      return Status(Code::kInternal, std::move(message));
  }
}

inline OrtStatus* give_status(const OrtApi& api, const Status& status) {
  if (status.ok()) return nullptr;
  OrtErrorCode code = ORT_FAIL;
  if (status.code() == Code::kInvalidArgument || status.code() == Code::kCorrupt) {
    code = ORT_INVALID_ARGUMENT;
  } else if (status.code() == Code::kUnsupported) {
    code = ORT_NOT_IMPLEMENTED;
  }
  return api.CreateStatus(code, status.message().c_str());
}

#define SAPWOOD_TRY_ORT(api, expression) SAPWOOD_TRY(::sapwood::ort::take_status(api, expression))

}  // namespace sapwood::ort
