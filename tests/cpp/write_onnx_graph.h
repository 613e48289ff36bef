// The fused target.onnx of a test bundle, written without ONNX's own library: a node a layer,
// weights as external data in target.weights.
#pragma once

#include <string>

#include "base/status.h"
#include "model/spec.h"

namespace sapwood {

// Adds target.onnx to the bundle in `folder` and names it in the manifest. `graph_spec` is what the
// graph is made for: the bundle's own spec, or another one where the test wants a graph that does
// not fit.
Status write_onnx_graph(const std::string& folder, const ModelSpec& graph_spec);

// Names `contents`, whatever they are, as the bundle's target.onnx.
Status write_onnx_file(const std::string& folder, const std::string& contents);

}  // namespace sapwood
