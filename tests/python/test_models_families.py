"""The torch decoder against transformers: a saved folder goes in, the same logits come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from sapwood_export.models.passes import chain_pass, tree_pass  # noqa: E402
from sapwood_export.models.session import DecoderSession  # noqa: E402
from sapwood_export.models.weights import weights_from_source  # noqa: E402
from sapwood_export.sources import open_source  # noqa: E402
from tiny_transformers import FAMILIES, save_model, tiny_model  # noqa: E402

TOLERANCE = 1e-4
LENGTH = 40  # beyond the sliding window of 8 and Llama 3's original context of 32


class Pair:
    """One model in transformers and in our decoder, read from the folder that it was saved to."""

    def __init__(self, family: str, folder: Path) -> None:
        self.theirs: Any = tiny_model(family)
        self.source = open_source(save_model(self.theirs, folder, family))
        self.weights = weights_from_source(self.source)
        generator = np.random.default_rng(3)
        self.tokens = generator.integers(0, self.source.spec.vocabulary_size, LENGTH).tolist()

    def ours(self) -> DecoderSession:
        return DecoderSession(self.source.spec, self.weights, slots=96)

    def their_logits(self, tokens: list[int]) -> np.ndarray[Any, Any]:
        with torch.no_grad():
            result: np.ndarray[Any, Any] = self.theirs(torch.tensor([tokens])).logits[0].numpy()
        return result


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(request.param, tmp_path_factory.mktemp(request.param))


def assert_close(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> None:
    assert ours.shape == theirs.shape
    assert np.abs(theirs).max() > 0.5, "logits near zero would hide mistakes"
    assert np.abs(ours - theirs).max() < TOLERANCE


def test_a_prompt_gives_the_logits_of_transformers(pair: Pair) -> None:
    assert_close(pair.ours().extend(pair.tokens), pair.their_logits(pair.tokens))


def test_decoding_from_the_cache_gives_the_logits_of_a_whole_prompt(pair: Pair) -> None:
    session = pair.ours()
    logits = [session.extend(pair.tokens[:17]), session.extend(pair.tokens[17:20])]
    logits += [session.extend([token]) for token in pair.tokens[20:]]
    assert_close(np.concatenate(logits), pair.their_logits(pair.tokens))


def test_every_node_of_a_tree_gives_the_logits_of_its_own_path(pair: Pair) -> None:
    session = pair.ours()
    session.extend(pair.tokens[:30])
    nodes = [11, 12, 13, 14, 15, 16]
    parents = [-1, -1, 0, 0, 2, 1]
    logits = session.tree(nodes, parents)
    for node, parent in enumerate(parents):
        path = [nodes[node]]
        while parent >= 0:
            path.insert(0, nodes[parent])
            parent = parents[parent]
        expected = pair.their_logits(pair.tokens[:30] + path)[-1:]
        assert_close(logits[node : node + 1], expected)


def test_logits_do_not_depend_on_where_the_slots_lie(pair: Pair) -> None:
    scattered = np.random.default_rng(5).permutation(96).tolist()
    prompt, nodes, parents = pair.tokens[:20], [5, 6, 7], [-1, 0, 0]
    straight, jumbled = pair.ours(), pair.ours()
    straight.extend(prompt)
    jumbled.run(chain_pass(prompt, [], scattered[:20]))
    expected = straight.tree(nodes, parents)
    actual = jumbled.run(tree_pass(nodes, parents, scattered[:20], scattered[20:23]))
    assert_close(actual, expected)


def test_only_the_rows_asked_for_give_logits(pair: Pair) -> None:
    arrays = chain_pass(pair.tokens, [], range(LENGTH), output_rows=[LENGTH - 1, 3])
    logits = pair.ours().run(arrays)
    assert_close(logits, pair.their_logits(pair.tokens)[[LENGTH - 1, 3]])
