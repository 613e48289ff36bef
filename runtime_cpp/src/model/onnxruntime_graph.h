// What target.onnx must look like for a spec: its inputs and outputs, by name, type and shape.
#pragma once

#include <onnxruntime_c_api.h>

#include <string>

#include "base/status.h"
#include "model/spec.h"

namespace sapwood {

// The graph's inputs of one pass, in RowBatch's order.
inline constexpr const char* kPassInputs[] = {
    "token_ids", "positions", "slots", "context_slots", "path_slots", "path_ranges", "output_rows"};
inline constexpr const char* kLogits = "logits";

// "past_keys.3"
std::string cache_name(const char* kind, int layer);

// An error, beginning with `where`, if the session's graph does not take and give exactly what a
// pass of this model needs.
Status check_graph(const OrtApi& api, const OrtSession* session, const ModelSpec& spec,
                   const std::string& where);

}  // namespace sapwood
