"""onnxsim between tracing and surgery: constants folded, shapes inferred, no-op nodes dropped."""

from __future__ import annotations

import onnx_ir as ir

from sapwood.errors import SapwoodError


def simplify(model: ir.Model) -> ir.Model:
    """The simplified graph. Weights must still be graph inputs: none is copied or folded."""
    import onnxsim

    simplified, agrees = onnxsim.simplify(ir.to_proto(model), check_n=0)
    if not agrees:
        raise SapwoodError("ONNX export: onnxsim changed what the graph computes; update onnxsim")
    result: ir.Model = ir.from_proto(simplified)
    # Shape inference renames symbolic dimensions here and there; the graph's own names stand.
    for old, new in (
        *zip(model.graph.inputs, result.graph.inputs, strict=True),
        *zip(model.graph.outputs, result.graph.outputs, strict=True),
    ):
        assert old.name == new.name
        new.shape = old.shape
    return result
