"""Turns a graph's weight inputs into initialisers: packed ones of the bundle, or plain numbers."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from sapwood.errors import SapwoodError
from sapwood_export.bundle import Manifest, read_dequantized, read_manifest
from sapwood_export.onnx.interface import PASS_INPUTS
from sapwood_export.onnx.rewrites.workpiece import PACKED, PackedWeight


def packed_weights(manifest: Manifest) -> dict[str, PackedWeight]:
    """How each quantised tensor of a bundle lies in it."""
    return {
        name: PackedWeight(entry["format"], entry["shape"][0], entry["shape"][1], entry["bytes"])
        for name, entry in manifest["target"]["tensors"].items()
        if entry["format"] != "float32"
    }


def weight_inputs(graph: ir.Graph) -> list[ir.Value]:
    """The graph inputs that are weights: all but the pass and the caches."""
    return [
        value
        for value in graph.inputs
        if value.name not in PASS_INPUTS and not str(value.name).startswith("past_")
    ]


def attach_weights(model: ir.Model, bundle: Path) -> None:
    """Makes every weight input an initialiser, in place.

    Packed weights and the bundle's float32 tensors become external data: they stay in the weights
    file, at the manifest's offsets. Plain numbers of a quantised weight, which only an unfused
    graph asks for, are dequantised one tensor at a time when the model is written.
    """
    manifest = read_manifest(bundle)
    location, tensors = manifest["target"]["weights"], manifest["target"]["tensors"]
    inputs = weight_inputs(model.graph)
    for value in inputs:
        stored_name = str(value.name)
        name = stored_name.removesuffix(PACKED)
        if name not in tensors:
            raise SapwoodError(f"{bundle}: the bundle has no tensor '{name}'; export it again")
        entry = tensors[name]
        assert value.dtype is not None
        if stored_name.endswith(PACKED) or entry["format"] == "float32":
            shape = ir.Shape([entry["bytes"]] if stored_name.endswith(PACKED) else entry["shape"])
            value.const_value = ir.ExternalTensor(
                location,
                entry["offset"],
                entry["bytes"],
                value.dtype,
                shape=shape,
                name=stored_name,
                base_dir=bundle,
            )
        else:
            value.const_value = _dequantized(bundle, name, value)
    kept = [value for value in model.graph.inputs if value not in inputs]
    model.graph.inputs.clear()
    model.graph.inputs.extend(kept)
    taken = {str(value.name) for value in inputs}
    for value in inputs:
        name = str(value.name).removesuffix(PACKED)
        if name not in taken:  # a graph that is fused in part has a weight's numbers as well
            value.name = name
        model.graph.register_initializer(value)


def _dequantized(bundle: Path, name: str, value: ir.Value) -> ir.TensorProtocol:
    assert value.shape is not None
    return ir.LazyTensor(
        lambda: ir.tensor(read_dequantized(bundle, name)),
        dtype=ir.DataType.FLOAT,
        shape=value.shape,
        name=name,
    )
