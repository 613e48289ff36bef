"""The arguments of the operator ``decoder_layer``: their names and order, for all that call it.

The same order is runtime_cpp/src/operators/layer.h's.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from sapwood_export.spec import ModelSpec

if TYPE_CHECKING:
    from torch import Tensor

LAYER_WEIGHTS = ("attention_norm", "mlp_norm", "qkv", "output", "gate_up", "down")
OPTIONAL_WEIGHTS = ("qkv_bias", "q_norm", "k_norm", "attention_post_norm", "mlp_post_norm")
LINEARS = LAYER_WEIGHTS[2:]
_SIZES = (
    "int heads, int kv_heads, int head_dim, int intermediate, float norm_epsilon, "
    "float attention_scale, int window, str activation"
)


def layer_schema() -> str:
    """What ``layer_arguments`` gives, as a schema of torch has it."""
    weights = [f"Tensor {name}" for name in LAYER_WEIGHTS]
    weights += [f"Tensor? {name}" for name in OPTIONAL_WEIGHTS]
    return ", ".join([*weights, _SIZES, *(f"str {name}_format" for name in LINEARS)])


def layer_arguments(
    spec: ModelSpec,
    layer: int,
    names: Container[str],
    tensor: Callable[[str], Tensor],
    form: Callable[[str], str],
) -> list[Any]:
    """All that follows the caches: weights, sizes, formats.

    ``names`` are the bundle's tensors; ``tensor`` and ``form`` give one and its packed format.
    """
    prefix = f"layers.{layer}."
    optional = [prefix + name for name in OPTIONAL_WEIGHTS]
    return [
        *(tensor(prefix + name) for name in LAYER_WEIGHTS),
        *(tensor(name) if name in names else None for name in optional),
        spec.heads,
        spec.kv_heads,
        spec.head_dim,
        spec.intermediate_size,
        spec.norm_epsilon,
        spec.attention_scale,
        spec.sliding_window if spec.layer_is_sliding[layer] else 0,
        spec.activation,
        *(form(prefix + name) for name in LINEARS),
    ]
