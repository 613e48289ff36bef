"""Our operators in torch: registered soundly, and the same numbers as the compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

from operator_graphs import random_cache, random_packed, random_pass, run_operator  # noqa: E402
from sapwood_export.operators.library import SCHEMAS, operators  # noqa: E402
from sapwood_export.quantize.formats import FORMATS  # noqa: E402

Arrays = dict[str, "np.ndarray[Any, Any] | None"]
ROWS, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, UNITS, VOCABULARY = 5, 4, 2, 32, 128, 96, 40
WEIGHTS = {"weight", "gate_up", "table", "norm", "head", "attention_norm", "mlp_norm", "qkv"}
WEIGHTS |= {"output", "down", "qkv_bias", "q_norm", "k_norm"}
WEIGHTS |= {"attention_post_norm", "mlp_post_norm"}
PASS = ("slots", "context_slots", "path_slots", "path_ranges")


class Case:
    """One call: inputs by the ONNX operator's names, attributes in the order of torch's schema."""

    def __init__(self, operator: str, inputs: Arrays, attributes: dict[str, Any]) -> None:
        self.operator, self.inputs, self.attributes = operator, inputs, attributes

    def torch_arguments(self) -> list[Any]:
        tensors = [
            None if array is None else torch.from_numpy(array) for array in self.inputs.values()
        ]
        return [*tensors, *self.attributes.values()]

    def torch_name(self) -> str:
        words = "".join("_" + c.lower() if c.isupper() else c for c in self.operator)
        return words.removeprefix("_")

    def in_torch(self) -> list[np.ndarray[Any, Any]]:
        result = getattr(operators(), self.torch_name())(*self.torch_arguments())
        tensors: Sequence[Any] = result if isinstance(result, tuple) else [result]
        return [tensor.numpy() for tensor in tensors]

    def in_onnxruntime(self) -> list[np.ndarray[Any, Any]]:
        weights = [
            name for name, array in self.inputs.items() if name in WEIGHTS and array is not None
        ]
        return run_operator(self.operator, self.inputs, self.attributes, constants=weights)


def linear_case(form: str, seed: int = 0) -> Case:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(ROWS, HIDDEN)).astype(np.float32)
    x[1, 32:64] = 0  # a group without a scale
    inputs = {"x": x, "weight": random_packed(generator, form, VOCABULARY, HIDDEN)}
    return Case(
        "QuantizedLinear", inputs, {"format": form, "outputs": VOCABULARY, "inputs": HIDDEN}
    )


GREEDY = {"verifier": "target_draw", "temperature": 0.0}


def chain_to_verify(logits: np.ndarray[Any, Any]) -> Arrays:
    """A chain of the likeliest tokens, which the target agrees with but for the last."""
    mask = np.zeros((ROWS, 2), np.uint8)
    mask[: ROWS - 1, 0] = 1
    target = logits.copy()
    target[ROWS - 2] *= -1
    return {
        "target_logits": target,
        "draft_logits": logits,
        "tree_mask": mask,
        "importance_weights": np.ones((ROWS, 2), np.float32),
        "draw": None,
    }


def cases() -> list[Case]:
    generator = np.random.default_rng(1)

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return generator.normal(size=shape).astype(np.float32)

    def near_one(*shape: int) -> np.ndarray[Any, Any]:
        return 1 + normal(*shape) / 4

    def packed(outputs: int, inputs: int) -> np.ndarray[Any, Any]:
        return random_packed(generator, "int4_g32_min", outputs, inputs)

    positions = np.array([0, 1, 7, 500, 2000], np.int32)
    rotary = np.cos(normal(ROWS, HEAD_DIM))
    rows = np.array([4, 0], np.int32)
    queries, keys = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    attention: Arrays = {
        "q": normal(ROWS, HEADS, HEAD_DIM),
        "k": normal(ROWS, KV_HEADS, HEAD_DIM),
        "v": normal(ROWS, KV_HEADS, HEAD_DIM),
        **random_pass(generator, ROWS, 20, 48),
        **random_cache(generator, KV_HEADS, 48, HEAD_DIM),
    }
    sizes = {"heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM, "intermediate": UNITS}

    def prune(uncertainty: np.ndarray[Any, Any] | None) -> Case:
        inputs = {
            "logits": 3 * normal(ROWS, VOCABULARY),
            "entropy_threshold": np.float32([2.5]),
            "uncertainty": uncertainty,
        }
        attributes = {
            "max_tree_width": 6,
            "beta_base": 0.3,
            "rho_min": 0.02,
            "rho_max": 0.6,
            "entropy_low": 0.8,
        }
        return Case("DynamicTreePrune", inputs, attributes)

    def layer(window: int, activation: str, optional: bool) -> Case:
        inputs: Arrays = {"hidden": normal(ROWS, HIDDEN), "rotary": rotary}
        inputs |= {name: attention[name] for name in (*PASS, "past_keys", "past_values")}
        inputs |= {"attention_norm": near_one(HIDDEN), "mlp_norm": near_one(HIDDEN)}
        inputs |= {"qkv": packed(queries + 2 * keys, HIDDEN), "output": packed(HIDDEN, queries)}
        inputs |= {"gate_up": packed(2 * UNITS, HIDDEN), "down": packed(HIDDEN, UNITS)}
        inputs |= {
            "qkv_bias": normal(queries + 2 * keys) if optional else None,
            "q_norm": near_one(HEAD_DIM) if optional else None,
            "k_norm": near_one(HEAD_DIM) if optional else None,
            "attention_post_norm": near_one(HIDDEN) if optional else None,
            "mlp_post_norm": near_one(HIDDEN) if optional else None,
        }
        attributes = {**sizes, "norm_epsilon": 1e-5, "attention_scale": 0.2, "window": window}
        attributes["activation"] = activation
        for name in ("qkv", "output", "gate_up", "down"):
            attributes[f"{name}_format"] = "int4_g32_min"
        return Case("DecoderLayer", inputs, attributes)

    gate_up = {"x": normal(ROWS, HIDDEN), "gate_up": packed(2 * UNITS, HIDDEN)}
    gated = {"format": "int4_g32_min", "intermediate": UNITS, "inputs": HIDDEN}
    table = {"token_ids": np.array([3, 39, 0], np.int32), "table": packed(VOCABULARY, HIDDEN)}
    table_sizes = {"format": "int4_g32_min", "hidden": HIDDEN, "vocabulary": VOCABULARY}
    head = {"hidden": normal(ROWS, HIDDEN), "output_rows": rows, "norm": near_one(HIDDEN)}
    return [
        Case("RmsNorm", {"x": normal(ROWS, HIDDEN), "weight": near_one(HIDDEN)}, {"epsilon": 1e-5}),
        Case(
            "RotaryTable",
            {"positions": positions, "inverse_frequencies": np.abs(normal(HEAD_DIM // 2))},
            {},
        ),
        Case("RotaryEmbedding", {"x": normal(ROWS, HEADS, HEAD_DIM), "rotary": rotary}, {}),
        Case("GatedLinear", dict(gate_up), {**gated, "activation": "silu"}),
        Case("GatedLinear", dict(gate_up), {**gated, "activation": "gelu_tanh"}),
        Case("TokenEmbedding", dict(table), {**table_sizes, "scale": 11.5}),
        Case(
            "OutputHead",
            {**head, "head": packed(VOCABULARY, HIDDEN)},
            {"format": "int4_g32_min", "norm_epsilon": 1e-5, "vocabulary": VOCABULARY},
        ),
        Case("TreeAttention", attention, {"scale": 0.2, "window": 0}),
        Case("TreeAttention", attention, {"scale": 0.2, "window": 6}),
        prune(uncertainty=None),
        prune(uncertainty=generator.uniform(size=ROWS).astype(np.float32)),
        Case("BlockSparseVerify", chain_to_verify(normal(ROWS, VOCABULARY)), GREEDY),
        layer(0, "silu", optional=False),
        layer(6, "gelu_tanh", optional=True),
    ]


CASES = [linear_case(form) for form in FORMATS] + cases()
IDS = [f"{case.operator}-{index}" for index, case in enumerate(CASES)]


def test_every_registered_operator_has_a_case() -> None:
    assert {case.torch_name() for case in CASES} == set(SCHEMAS)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_schema_and_shape_function_agree_with_what_is_computed(case: Case) -> None:
    operator = getattr(operators(), case.torch_name()).default
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(operator, tuple(case.torch_arguments()), test_utils=checks)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_quantized_linear_has_the_bits_of_the_kernels(form: str, seed: int) -> None:
    case = linear_case(form, seed)
    np.testing.assert_array_equal(case.in_torch()[0], case.in_onnxruntime()[0])


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_torch_and_the_compiled_operator_agree(case: Case) -> None:
    ours, compiled = case.in_torch(), case.in_onnxruntime()
    assert len(ours) == len(compiled)
    for mine, theirs in zip(ours, compiled, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        # A value on the edge between two int8 codes or two halves may fall to either side.
        scale = np.abs(theirs.astype(np.float32)).max()
        difference = np.abs(mine.astype(np.float32) - theirs.astype(np.float32))
        assert difference.max() < 0.02 * scale
        assert difference.mean() < 1e-4 * scale


def test_a_traced_graph_keeps_an_operator_whole_and_its_rows_symbolic() -> None:
    class Norm(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, weight: Any) -> Any:
            return operators().rms_norm(x, weight, 1e-5)

    example = (torch.ones(3, 64), torch.ones(64))
    rows = torch.export.Dim("rows")
    program = torch.export.export(Norm(), example, dynamic_shapes=({0: rows}, None))
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    assert [str(node.target) for node in calls] == ["sapwood.rms_norm.default"]
    assert program.module()(torch.ones(9, 64), torch.ones(64)).shape == (9, 64)
