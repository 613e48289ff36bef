"""The runtime's draft head beside the one in torch that is trained (sapwood_export/distill)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood_export.bundle import read_dequantized, read_spec
from sapwood_export.distill.draft_folder import read_draft
from text_rows import text_rows
from tiny_drafts import write_tiny_draft

ROWS, STEPS = 12, 3


def distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Relative, in the Euclidean norm."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def head_rows(tokens: list[int]) -> dict[str, Any]:
    """A text from its beginning; a head says something of every row."""
    rows = text_rows(tokens)
    del rows["output_rows"]
    return rows


def test_states_laws_and_uncertainty_are_those_of_torch_up_to_rounded_activations(
    tiny_bundle: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from sapwood_export.distill.head import HeadInputs, output_states, unrolled_states
    from sapwood_export.distill.uncertainty import predicted_rejection
    from sapwood_export.models.decoder import rotary_table

    folder = write_tiny_draft(tmp_path / "draft", tiny_bundle)
    spec, draft = read_spec(tiny_bundle), read_draft(folder)
    weights = {name: torch.from_numpy(values) for name, values in draft.tensors.items()}
    generator = np.random.default_rng(3)
    tokens = generator.integers(0, spec.vocabulary_size, ROWS + 1)
    features = generator.standard_normal((ROWS, weights["fuse"].shape[1])).astype(np.float32)
    embedded = read_dequantized(tiny_bundle, "embedding")[tokens[1:]]
    rope = torch.from_numpy(read_dequantized(tiny_bundle, "rope.global"))
    inputs = HeadInputs(
        torch.from_numpy(embedded)[None],
        torch.from_numpy(features)[None],
        rotary_table(torch.arange(ROWS), rope)[None],
        torch.ones(1, ROWS, ROWS, dtype=torch.bool).tril(),
    )
    with torch.no_grad():
        expected = [state[0].numpy() for state in unrolled_states(spec, weights, inputs, STEPS)]

    head = _runtime.DraftHead.open(str(folder), target_folder=str(tiny_bundle), threads=1)
    verified = 7  # then a chain of guesses along the text
    kv = head.make_kv(32)
    slots = list(range(ROWS))
    last = verified - 1
    logits, states = head.forward(
        kv,
        **head_rows(tokens[1 : verified + 1].tolist()),
        features=features[:verified],
        states=np.empty((0, spec.hidden_size), np.float32),
    )
    for step in range(STEPS):
        row = last + step
        if step > 0:
            logits, states = head.forward(
                kv,
                tokens=[int(tokens[row + 1])],
                positions=[row],
                slots=[row],
                context_slots=slots[:row],
                path_slots=[row],
                path_begin=[0],
                path_end=[1],
                features=np.empty((0, features.shape[1]), np.float32),
                states=states[-1:],
            )
        assert distance(states[-1], expected[step][row]) < 0.05, step
        with torch.no_grad():
            normed = output_states(weights, torch.from_numpy(states[-1]), spec.norm_epsilon)
            law = (normed @ weights["head"].T).numpy()
            rejection = float(predicted_rejection(weights, normed))
        assert distance(logits[-1], law) < 0.03, step
        told = head.uncertainty(states[-1])
        assert told == pytest.approx(rejection, abs=1e-4)


def test_tokens_of_the_text_that_the_draft_lacks_are_foretold_with_the_targets_own_rows(
    tiny_bundle: Path, tmp_path: Path
) -> None:
    folder = write_tiny_draft(tmp_path / "draft", tiny_bundle, head_of_target=True)
    spec, draft = read_spec(tiny_bundle), read_draft(folder)
    head = _runtime.DraftHead.open(str(folder), target_folder=str(tiny_bundle), threads=1)
    vocabulary = head.make_vocabulary()
    own = len(draft.vocabulary_ids)
    assert vocabulary.tokens[:own] == draft.vocabulary_ids.tolist()
    assert set(vocabulary.tokens[own:]) == {-1}
    missing = sorted(set(range(spec.vocabulary_size)) - set(vocabulary.tokens))[:30]
    vocabulary.begin([*missing[:20], int(draft.vocabulary_ids[0]), *missing[:5]])
    vocabulary.add(missing)
    assert vocabulary.tokens[own : own + 31] == [*missing, -1]

    generator = np.random.default_rng(1)
    state = generator.standard_normal((1, spec.hidden_size)).astype(np.float32)
    logits, states = head.forward(
        head.make_kv(16),
        **head_rows([1]),
        features=np.empty((0, 2 * spec.hidden_size), np.float32),
        states=state,
        vocabulary=vocabulary,
    )
    normed = states[0] / np.sqrt(np.mean(states[0] ** 2) + spec.norm_epsilon)
    normed *= draft.tensors["output_norm"]
    rows = read_dequantized(tiny_bundle, "embedding" if spec.tied_head else "head")[missing]
    assert distance(logits[0, own : own + 30], rows @ normed) < 0.03
    assert np.all(logits[0, own + 30 :] < -1e29)


def test_a_text_with_a_token_outside_the_vocabulary_is_refused(
    tiny_bundle: Path, tmp_path: Path
) -> None:
    folder = write_tiny_draft(tmp_path / "draft", tiny_bundle)
    head = _runtime.DraftHead.open(str(folder), target_folder=str(tiny_bundle), threads=1)
    vocabulary = head.make_vocabulary()
    size = read_spec(tiny_bundle).vocabulary_size
    with pytest.raises(SapwoodError, match=f"token {size} is not one of {size}"):
        vocabulary.add([0, size])
