#include "operators/onnxruntime/cache_inputs.h"

#include <cstring>

namespace sapwood::ort {
namespace {

// Gives the output the past's contents, unless it is the past.
Status open_present(KernelCall& call, size_t output, const Tensor& past, uint16_t** present) {
  SAPWOOD_TRY(call.write(output, past.shape, present));
  if (*present != past.data) {
    std::memcpy(*present, past.data, static_cast<size_t>(past.elements()) * sizeof(uint16_t));
  }
  return operators::check_cache_alignment(*present);
}

}  // namespace

Status open_cache(KernelCall& call, const CachePorts& ports, int rows, int kv_heads, int head_dim,
                  Resources& resources, CacheCall* out) {
  operators::CacheArguments arguments;
  SAPWOOD_TRY(call.read(ports.slots(), &arguments.slots));
  SAPWOOD_TRY(call.read(ports.context_slots(), &arguments.context_slots));
  SAPWOOD_TRY(call.read(ports.path_slots(), &arguments.path_slots));
  SAPWOOD_TRY(call.read(ports.path_ranges(), &arguments.path_ranges));
  SAPWOOD_TRY(call.read(ports.past_keys(), &arguments.past_keys));
  SAPWOOD_TRY(call.read(ports.past_values(), &arguments.past_values));
  SAPWOOD_TRY(operators::open_cache(arguments, rows, kv_heads, head_dim, resources, out));
  SAPWOOD_TRY(open_present(call, ports.first_output, arguments.past_keys, &out->kv.keys));
  return open_present(call, ports.first_output + 1, arguments.past_values, &out->kv.values);
}

Status infer_cache(ShapeInference& shapes, const CachePorts& ports, const Dim& rows, int kv_heads,
                   int head_dim) {
  SAPWOOD_TRY(shapes.expect(ports.slots(), {rows.size}));
  SAPWOOD_TRY(shapes.expect(ports.context_slots(), {kAny}));
  SAPWOOD_TRY(shapes.expect(ports.path_slots(), {kAny}));
  SAPWOOD_TRY(shapes.expect(ports.path_ranges(), {rows.size, 2}));
  SAPWOOD_TRY(shapes.expect(ports.past_keys(), {kv_heads, kAny, head_dim, kKeyTile}));
  SAPWOOD_TRY(shapes.expect(ports.past_values(), {kv_heads, kAny, head_dim}));
  SAPWOOD_TRY(shapes.set_output(ports.first_output,
                                {kv_heads, shapes.dim(ports.past_keys(), 1), head_dim, kKeyTile}));
  return shapes.set_output(ports.first_output + 1,
                           {kv_heads, shapes.dim(ports.past_values(), 1), head_dim});
}

}  // namespace sapwood::ort
