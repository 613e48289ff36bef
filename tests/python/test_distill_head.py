"""The draft head in torch: unrolled training against drafting row by row, and the loss."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from sapwood_export.distill.draft_folder import LAYER  # noqa: E402
from sapwood_export.distill.head import (  # noqa: E402
    HeadInputs,
    fused_input,
    unrolled_states,
)
from sapwood_export.distill.losses import soft_cross_entropy  # noqa: E402
from sapwood_export.distill.parallel import initial_parallel, parallel_states  # noqa: E402
from sapwood_export.distill.rounding import rounded  # noqa: E402
from sapwood_export.distill.text_tokens import TextTokens  # noqa: E402
from sapwood_export.distill.windows import Batch  # noqa: E402
from sapwood_export.models.decoder import decoder_layer, rotary_table  # noqa: E402
from sapwood_export.quantize.formats import linear_format  # noqa: E402
from sapwood_export.spec import ModelSpec  # noqa: E402

ROWS, FEATURES = 7, 2
SPEC = ModelSpec(
    family="llama",
    vocabulary_size=50,
    hidden_size=32,
    intermediate_size=64,
    layers=1,
    heads=4,
    kv_heads=2,
    head_dim=16,
    context_length=64,
    norm_epsilon=1e-5,
    attention_scale=0.25,
    layer_is_sliding=(False,),
)
VARIANTS = {
    "llama": SPEC,
    "qwen2": replace(SPEC, family="qwen2", qkv_bias=True),
    "qwen3": replace(SPEC, family="qwen3", qk_norm=True),
    "gemma3": replace(SPEC, family="gemma3", qk_norm=True, post_norms=True, activation="gelu_tanh"),
}

Weights = dict[str, torch.Tensor]


def random_weights(spec: ModelSpec) -> Weights:
    h, units, d = spec.hidden_size, spec.intermediate_size, spec.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "fuse": (h, FEATURES * h),
        "input": (h, 2 * h),
        "embedding_norm": (h,),
        "feature_norm": (h,),
        "output_norm": (h,),
        "head": (20, h),
        LAYER + "attention_norm": (h,),
        LAYER + "qkv": (spec.qkv_outputs, h),
        LAYER + "output": (h, spec.heads * d),
        LAYER + "mlp_norm": (h,),
        LAYER + "gate_up": (2 * units, h),
        LAYER + "down": (h, units),
    }
    if spec.qkv_bias:
        shapes[LAYER + "qkv_bias"] = (spec.qkv_outputs,)
    if spec.qk_norm:
        shapes |= {LAYER + "q_norm": (d,), LAYER + "k_norm": (d,)}
    if spec.post_norms:
        shapes |= {LAYER + "attention_post_norm": (h,), LAYER + "mlp_post_norm": (h,)}
    generator = torch.Generator().manual_seed(5)
    return {
        name: torch.randn(shape, generator=generator) / shape[-1] ** 0.5
        if len(shape) == 2
        else 1 + 0.2 * torch.randn(shape, generator=generator)
        for name, shape in shapes.items()
    }


def random_inputs(spec: ModelSpec, sequences: list[int]) -> HeadInputs:
    """One window of short sequences, one behind the other, each from position 3 on."""
    generator = torch.Generator().manual_seed(6)
    rows = sum(sequences)
    positions = torch.cat([torch.arange(length) + 3 for length in sequences])
    sequence = torch.repeat_interleave(torch.arange(len(sequences)), torch.tensor(sequences))
    frequencies = 100.0 ** -(torch.arange(spec.head_dim // 2) / spec.head_dim)
    same = sequence[:, None] == sequence[None, :]
    return HeadInputs(
        embedded=torch.randn(1, rows, spec.hidden_size, generator=generator),
        features=torch.randn(1, rows, FEATURES * spec.hidden_size, generator=generator),
        rotary=rotary_table(positions, frequencies)[None],
        visible=(same & torch.ones(rows, rows, dtype=torch.bool).tril())[None],
    )


class RowByRow:
    """Drafting as the runtime does it: a cache, one row at a time, through the target's layer."""

    def __init__(self, spec: ModelSpec, weights: Weights, inputs: HeadInputs) -> None:
        self.spec, self.weights, self.inputs = spec, weights, inputs
        self.layer = {
            name.removeprefix(LAYER): tensor
            for name, tensor in weights.items()
            if name.startswith(LAYER)
        }
        self.keys = torch.zeros(spec.kv_heads, ROWS, spec.head_dim)
        self.values = torch.zeros_like(self.keys)

    def row(self, index: int, feature: torch.Tensor) -> torch.Tensor:
        """Computes a row that sees all before it and itself; keeps its keys and values."""
        z = fused_input(
            self.weights, self.inputs.embedded[0, index], feature, self.spec.norm_epsilon
        )
        slots = torch.arange(index + 1)
        state, self.keys, self.values = decoder_layer(
            self.spec,
            self.layer,
            z[None],
            self.inputs.rotary[0, index][None],
            torch.ones(1, index + 1, dtype=torch.bool),
            slots,
            slots[-1:],
            self.keys,
            self.values,
        )
        return state[0]


@pytest.mark.parametrize("family", VARIANTS)
def test_unrolled_steps_are_drafting_row_by_row(family: str) -> None:
    spec, steps = VARIANTS[family], 3
    weights, inputs = random_weights(spec), random_inputs(spec, [ROWS])
    states = unrolled_states(spec, weights, inputs, steps)
    for verified in range(1, ROWS + 1):
        drafting = RowByRow(spec, weights, inputs)
        for index in range(verified):
            state = drafting.row(index, weights["fuse"] @ inputs.features[0, index])
        torch.testing.assert_close(states[0][0, verified - 1], state, atol=1e-5, rtol=1e-4)
        for step in range(1, min(steps, ROWS - verified + 1)):
            index = verified - 1 + step
            state = drafting.row(index, state)
            torch.testing.assert_close(states[step][0, index], state, atol=1e-5, rtol=1e-4)


def test_sequences_that_share_a_window_do_not_see_each_other() -> None:
    weights = random_weights(SPEC)
    both = unrolled_states(SPEC, weights, random_inputs(SPEC, [4, 3]), 2)
    inputs = random_inputs(SPEC, [4, 3])
    alone = HeadInputs(
        inputs.embedded[:, 4:],
        inputs.features[:, 4:],
        inputs.rotary[:, 4:],
        inputs.visible[:, 4:, 4:],
    )
    second = unrolled_states(SPEC, weights, alone, 2)
    torch.testing.assert_close(both[0][:, 4:], second[0])
    torch.testing.assert_close(both[1][:, 5:], second[1][:, 1:])


def test_parallel_heads_start_as_one_prediction_and_read_one_row_each() -> None:
    weights = initial_parallel(random_weights(SPEC), 3)
    inputs = random_inputs(SPEC, [ROWS])
    first, *others = parallel_states(SPEC, weights, inputs, 3)
    for other in others:
        torch.testing.assert_close(first, other)
    weights["parallel.1"] += torch.eye(SPEC.hidden_size)
    changed = HeadInputs(
        inputs.embedded.clone(), inputs.features.clone(), inputs.rotary, inputs.visible
    )
    changed.features[0, 2] += 1
    before = parallel_states(SPEC, weights, inputs, 3)
    after = parallel_states(SPEC, weights, changed, 3)
    assert not torch.equal(before[0], before[1])
    for old, new in zip(before, after, strict=True):
        moved = (old != new).any(-1)[0]
        assert moved.tolist() == [row == 2 for row in range(ROWS)]


def test_the_loss_and_its_gradients_are_those_of_plain_cross_entropy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sapwood_export.distill.losses._CHUNK_LOGITS", 40)  # two rows at a time
    generator = torch.Generator().manual_seed(7)
    states, labels = torch.randn(2, 9, 8, generator=generator, dtype=torch.float32)
    head, label_head = torch.randn(2, 20, 8, generator=generator)
    states.requires_grad_()
    head.requires_grad_()
    loss, agreement = soft_cross_entropy(states, head, labels, label_head)
    (3 * loss).backward()
    gradients = states.grad.clone(), head.grad.clone()
    states.grad = head.grad = None

    p = torch.softmax(labels @ label_head.T, -1)
    log_q = torch.log_softmax(states @ head.T, -1)
    expected = -(p * log_q).sum(-1).mean()
    (3 * expected).backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients[0], states.grad, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(gradients[1], head.grad, atol=1e-6, rtol=1e-5)
    q = log_q.detach().exp()
    torch.testing.assert_close(agreement.overlap, torch.minimum(p, q).sum(-1))
    assert agreement.same_top.bool().tolist() == (p.argmax(-1) == q.argmax(-1)).tolist()


def test_training_computes_with_weights_on_the_packed_grid() -> None:
    generator = torch.Generator().manual_seed(8)
    weight = torch.randn(4, 64, generator=generator, requires_grad=True)
    form = linear_format("int4_g32_min")
    on_grid = rounded(weight, form)
    groups = on_grid.detach().view(-1, 32)
    assert max(len(group.unique()) for group in groups) <= 16
    steps = (weight.detach().view(-1, 32).aminmax(dim=1).max - groups.min(1).values) / 15
    distance = (groups - weight.detach().view(-1, 32)).abs()
    assert (distance <= steps[:, None] / 2 + 1e-6).all()
    torch.testing.assert_close(rounded(on_grid.detach(), form), on_grid)
    on_grid.backward(torch.full((4, 64), 3.0))
    assert weight.grad is not None
    assert weight.grad.unique().tolist() == [3.0]
    assert rounded(weight, linear_format("int8_g32")) is weight


def test_a_draft_can_say_the_tokens_of_the_text_so_far_and_no_later_ones() -> None:
    inputs = random_inputs(SPEC, [4, 3])  # two texts in one window of seven rows
    tokens = torch.tensor([[7, 30, 7, 31, 31, 40, 2]])
    nothing = torch.zeros(1, ROWS)
    batch = Batch(inputs, tokens, nothing, nothing.bool(), nothing.long())
    in_subset = torch.zeros(SPEC.vocabulary_size, dtype=torch.bool)
    in_subset[:10] = True
    text = TextTokens.of(batch, in_subset)
    assert text.ids.tolist() == [30, 31, 40]
    seen = text.seen(torch.arange(ROWS)).int().tolist()
    assert seen[:4] == [[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0]]
    assert seen[4:] == [[0, 1, 0], [0, 1, 1], [0, 1, 1]], "the other text's tokens are not its own"
