"""What ExecuTorch asks of the operators beyond ``operators/library.py``.

A .pte calls the variant of an operator that writes into memory it is given: ``name.out``. And its
cache belongs to the runtime's pool, so the two operators that attend have a form of their own,
``_in_place``, which writes the rows' keys and values into the cache it reads. To the graph that
cache is a constant: nothing else reads what a layer writes there, so no order can be broken.
Importing this module registers them once. The kernels are in runtime_cpp/src/operators/executorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sapwood_export.operators.library import SCHEMAS

_OUTPUTS = {
    "dynamic_tree_prune": ("kept_indices", "importance_weights", "tree_mask"),
    "block_sparse_verify": ("accepted_length", "new_kv_indices", "next_token"),
}
# Those that a program may call, besides the two below.
_SHARED = (
    "rms_norm",
    "rotary_table",
    "rotary_embedding",
    "token_embedding",
    "output_head",
    *_OUTPUTS,
)
_ATTENDING = ("tree_attention", "decoder_layer")


def _out_variant(name: str, schema: str) -> str:
    arguments = schema[1 : schema.rindex(") -> ")]
    outputs = _OUTPUTS.get(name, ("out",))
    written = [f"Tensor({chr(ord('a') + place)}!)" for place in range(len(outputs))]
    given = ", ".join(f"{kind} {output}" for kind, output in zip(written, outputs, strict=True))
    result = written[0] if len(written) == 1 else f"({', '.join(written)})"
    return f"{name}.out({arguments}, *, {given}) -> {result}"


def _in_place(schema: str) -> str:
    renamed = schema.replace("past_keys", "keys").replace("past_values", "values")
    return renamed.replace("-> (Tensor, Tensor, Tensor)", "-> Tensor")


def _mixed(q: Tensor, *_: object) -> Tensor:
    return q.new_empty(q.shape[0], q.shape[1] * q.shape[2])


def _hidden(hidden: Tensor, *_: object) -> Tensor:
    return torch.empty_like(hidden)


def _register() -> Any:
    handle: Any = torch.library.Library("sapwood", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in _SHARED:
        handle.define(_out_variant(name, SCHEMAS[name]))
    for name, shape in zip(_ATTENDING, (_mixed, _hidden), strict=True):
        schema = _in_place(SCHEMAS[name])
        handle.define(f"{name}_in_place{schema}")
        handle.define(_out_variant(f"{name}_in_place", schema))
        torch.library.register_fake(f"sapwood::{name}_in_place", shape, lib=handle)
    return handle


_HANDLE = _register()  # the operators live as long as this does


def operators() -> Any:
    """The registered operators, ``torch.ops.sapwood``."""
    return torch.ops.sapwood
