"""The pruning controller at the end of a draft's graph, as a subgraph of its own.

``PruneController`` is a function of the ONNX model: anything that reads the graph sees one node
after the logits, and what it is made of under its name. It gives what a drafter would compute from
the logits on the host: the candidates that soft truncation keeps (MATH.md, section 3), the law they
are drawn from, and their importance weights. The logits are left as they are.

    logits [outputs, vocabulary], entropy_threshold [1] (nats; 2.5 unless it is fed)
    -> kept_indices int32 [outputs, width], -1 beyond what was kept
       log_q_kept float32 [outputs, width]: log q~, -infinity beyond
       importance_weights float32 [outputs, width]: q~ / q = 1 / Z, 0 beyond
       tree_mask uint8 [outputs, width]
       kept_counts int64 [outputs]
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from sapwood_export.onnx.interface import OPSET, OUTPUTS
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, DOMAIN_VERSION

FUNCTION = "PruneController"
FUNCTION_DOMAIN = "com.endpoint.ai.graph"  # of functions made of other operators
THRESHOLD = "entropy_threshold"
# The defaults of MATH.md, section 8.
WIDTH = 16
OPTIONS = {"beta_base": 0.3, "rho_min": 0.02, "rho_max": 0.6, "entropy_low": 0.8}
DEFAULT_THRESHOLD = 2.5

_RESULTS: dict[str, tuple[ir.DataType, tuple[str | int, ...]]] = {
    "kept_indices": (ir.DataType.INT32, (OUTPUTS, WIDTH)),
    "log_q_kept": (ir.DataType.FLOAT, (OUTPUTS, WIDTH)),
    "importance_weights": (ir.DataType.FLOAT, (OUTPUTS, WIDTH)),
    "tree_mask": (ir.DataType.UINT8, (OUTPUTS, WIDTH)),
    "kept_counts": (ir.DataType.INT64, (OUTPUTS,)),
}


def append_prune_controller(model: ir.Model) -> None:
    """Puts the controller after a finished graph's logits, in place."""
    graph = model.graph
    logits = next(value for value in graph.outputs if value.name == "logits")
    threshold = ir.Value(
        name=THRESHOLD,
        type=ir.TensorType(ir.DataType.FLOAT),
        shape=ir.Shape([1]),
        const_value=ir.tensor(np.array([DEFAULT_THRESHOLD], np.float32), name=THRESHOLD),
    )
    graph.inputs.append(threshold)  # an input with a default: an initialiser too
    graph.register_initializer(threshold)
    outputs = [
        ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
        for name, (dtype, shape) in _RESULTS.items()
    ]
    graph.append(
        ir.Node(FUNCTION_DOMAIN, FUNCTION, [logits, threshold], outputs=outputs, name=FUNCTION)
    )
    graph.outputs.extend(outputs)
    graph.opset_imports[FUNCTION_DOMAIN] = 1
    function = ir.serde.deserialize_function(_function())
    model.functions[function.identifier()] = function


def _function() -> onnx.FunctionProto:
    def node(op: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [output], **attributes)

    def constant(name: str, value: np.generic | np.ndarray) -> onnx.NodeProto:
        return node("Constant", [], name, value=onnx.numpy_helper.from_array(np.asarray(value)))

    prune = helper.make_node(
        "DynamicTreePrune",
        ["logits", THRESHOLD],
        ["kept_indices", "importance_weights", "tree_mask"],
        domain=DOMAIN,
        max_tree_width=WIDTH,
        **OPTIONS,
    )
    nodes = [
        prune,
        # log q~: the kept logits, normalised among themselves.
        constant("none", np.int32(0)),
        node("Max", ["kept_indices", "none"], "some_index"),
        node("GatherElements", ["logits", "some_index"], "some_logit", axis=1),
        node("Cast", ["tree_mask"], "is_kept", to=onnx.TensorProto.BOOL),
        constant("never", np.float32(-np.inf)),
        node("Where", ["is_kept", "some_logit", "never"], "kept_logits"),
        node("LogSoftmax", ["kept_logits"], "log_q_kept", axis=1),
        node("Cast", ["tree_mask"], "ones", to=onnx.TensorProto.INT64),
        constant("width_axis", np.array([1], np.int64)),
        node("ReduceSum", ["ones", "width_axis"], "kept_counts", keepdims=0),
    ]
    return helper.make_function(
        FUNCTION_DOMAIN,
        FUNCTION,
        ["logits", THRESHOLD],
        list(_RESULTS),
        nodes,
        [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, DOMAIN_VERSION)],
    )
