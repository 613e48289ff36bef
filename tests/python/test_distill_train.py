"""Training of a draft from shards: which rows, how it goes on, what it writes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sapwood._runtime", reason="sapwood is not built")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from runtime_session import RuntimeSession  # noqa: E402
from sapwood import _runtime  # noqa: E402
from sapwood.errors import SapwoodError  # noqa: E402
from sapwood_export.bundle import read_spec  # noqa: E402
from sapwood_export.command import export  # noqa: E402
from sapwood_export.distill import checkpoint  # noqa: E402
from sapwood_export.distill.draft_folder import (  # noqa: E402
    DraftFormats,
    DraftWeights,
    read_draft,
    write_draft,
)
from sapwood_export.distill.evaluate import TargetOutput, figures  # noqa: E402
from sapwood_export.distill.finish import choose_subset, compare_with_target, dequantised  # noqa: E402
from sapwood_export.distill.head import HeadInputs, output_states, unrolled_states  # noqa: E402
from sapwood_export.distill.losses import soft_cross_entropy  # noqa: E402
from sapwood_export.distill.shards import (  # noqa: E402
    Text,
    open_shard,
    shard_name,
    write_data_file,
    write_shard,
)
from sapwood_export.distill.text_tokens import TextTokens  # noqa: E402
from sapwood_export.distill.train import TrainingOptions, train  # noqa: E402
from sapwood_export.distill.training import Training  # noqa: E402
from sapwood_export.distill.uncertainty import (  # noqa: E402
    expected_calibration_error,
    fit_uncertainty,
    predicted_rejection,
)
from sapwood_export.distill.vocabulary import (  # noqa: E402
    FirstOccurrences,
    best_size,
    most_frequent,
    token_counts,
    weigh_sizes,
)
from sapwood_export.distill.windows import (  # noqa: E402
    MEASURED,
    TRAINED,
    Batch,
    Sampler,
    sequences,
    windows,
)
from tiny_models import tiny_config, tiny_weights, write_folder  # noqa: E402

LAYERS = (1, 2, 3)
LENGTH = 40
QUICK = TrainingOptions(
    tokens=16_000,
    subset=96,
    depths=2,
    window=64,
    windows=6,
    rate=3e-3,
    precision="float32",
    workers=2,
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny target of three layers that speaks 64 tokens most of the time."""
    folder = tmp_path_factory.mktemp("target")
    config = tiny_config("llama", num_hidden_layers=3)
    weights = tiny_weights(config)
    weights["model.embed_tokens.weight"][64:] *= 0.2
    return export(write_folder(folder / "source", config, weights), folder / "bundle").output


@pytest.fixture(scope="module")
def data(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards of what the target says after random starts, greedily."""
    folder = tmp_path_factory.mktemp("data")
    write_data_file(
        folder, {"layers": LAYERS, "mix": {"random": {"texts": 120, "tokens": 120 * LENGTH}}}
    )
    generator = np.random.default_rng(3)
    model = _runtime.open_native_model(str(bundle), threads=1)
    model.keep_hidden_states(list(LAYERS))
    for number in range(2):
        texts = [_greedy_text(model, generator.integers(0, 512, 3)) for _ in range(60)]
        write_shard(folder, shard_name(number), texts)
    return folder


def _greedy_text(model: Any, prompt: np.ndarray[Any, Any]) -> Text:
    session = RuntimeSession(model, LENGTH)
    tokens, hidden = list(map(int, prompt)), []
    logits = session.extend(tokens)
    hidden.append(model.hidden_states())
    while len(tokens) < LENGTH:
        tokens.append(int(logits[-1].argmax()))
        logits = session.extend(tokens[-1:])
        hidden.append(model.hidden_states())
    states = np.concatenate(hidden).astype(np.float16)
    return Text(np.array(tokens, np.int32), len(prompt), 0, 0.0, states)


def test_a_draft_is_trained_from_nothing_and_written(
    bundle: Path, data: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    record = train(bundle, data, tmp_path / "work", tmp_path / "draft", QUICK, lines.append)
    untrained = Training(bundle, data, QUICK)
    untrained.begin()
    start = _held_out_figures(untrained)
    before, after = (
        [depth["top"] for depth in record["held_out"]["before_packing"]],
        [depth["top"] for depth in record["held_out"]["by_depth"]],
    )
    assert before[0] > start[0].top + 0.1
    assert before[1] > start[1].top + 0.1
    assert after[0] > start[0].top
    assert record["tokens"] >= QUICK.tokens
    assert record["held_out"]["uncertainty_calibration_error"] < 0.2
    assert lines[0] == "fitting the first weights"

    manifest = json.loads((tmp_path / "draft" / "manifest.json").read_text())
    assert manifest["kind"] == "draft"
    assert manifest["target"]["hidden_size"] == 64
    assert manifest["draft"]["feature_layers"] == [1, 2]
    assert (tmp_path / "draft" / "README.md").read_text().startswith("# A draft for ")
    draft = read_draft(tmp_path / "draft")
    assert len(draft.vocabulary_ids) == 96
    assert (np.diff(draft.vocabulary_ids) > 0).all()
    assert draft.uncertainty_units == manifest["draft"]["uncertainty_units"] == 32


def test_parallel_heads_are_trained_by_the_same_command(
    bundle: Path, data: Path, tmp_path: Path
) -> None:
    options = replace(QUICK, kind="parallel_heads", tokens=6_000)
    record = train(bundle, data, tmp_path / "work", tmp_path / "draft", options, lambda _: None)
    draft = read_draft(tmp_path / "draft")
    assert (draft.kind, draft.parallel) == ("parallel_heads", 2)
    assert not any(name.startswith("layer.") for name in draft.tensors)
    assert [depth["rows"] > 0 for depth in record["held_out"]["by_depth"]] == [True, True]


def test_training_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(
    bundle: Path, data: Path, tmp_path: Path
) -> None:
    whole = Training(bundle, data, QUICK)
    whole.begin()
    for _ in range(3):
        whole.step()
    checkpoint.save(tmp_path, whole.state())
    other = Training(bundle, data, QUICK)
    state = checkpoint.load(tmp_path)
    assert state is not None
    other.restore(state)
    for training in (whole, other):
        for _ in range(30):  # into the next round of the shards
            training.step()
    assert (whole.tokens, whole.steps) == (other.tokens, other.steps)
    assert asdict(whole.sampler.state()) == asdict(other.sampler.state())
    for name, weight in whole.weights.items():
        assert torch.equal(weight, other.weights[name]), name


def test_on_a_gpu_a_step_takes_no_tensor_from_the_cpu(bundle: Path, data: Path) -> None:
    """On a stand-in: torch follows shapes and devices of a GPU that is not there, and refuses
    operations over two devices."""
    training = Training(bundle, data, QUICK)
    training.begin()
    weights = training.trained_weights()
    drawn = training.assembler.batch(training.sampler.draw(2))
    rows = drawn.rows(0)
    gpu = torch.device("cuda", 0)
    with FakeTensorMode() as stand_in, torch.no_grad():
        there = {name: stand_in.from_tensor(w).to(gpu) for name, w in weights.items()}
        target = TargetOutput(
            *map(stand_in.from_tensor, (training.target.norm, training.target.head)),
            training.target.norm_epsilon,
        ).to(gpu)
        inputs = HeadInputs(*map(stand_in.from_tensor, vars(drawn.inputs).values()))
        others = (drawn.tokens, drawn.final, drawn.counted, drawn.depth)
        batch = Batch(inputs, *map(stand_in.from_tensor, others)).to(gpu)
        rows = stand_in.from_tensor(rows).to(gpu)
        text = TextTokens(
            rows[:5], torch.empty(*batch.tokens.shape, 5, device=gpu), batch.inputs.visible
        )
        assert text.seen(rows).device == gpu
        for state in unrolled_states(training.spec, there, batch.inputs, 2):
            states = output_states(there, state.flatten(0, 1)[rows], training.spec.norm_epsilon)
            labels = target.states(batch.final.flatten(0, 1)[rows])
            loss, agreement = soft_cross_entropy(states, target.head, labels, target.head)
            assert {loss.device, agreement.same_top.device, agreement.overlap.device} == {gpu}
        with pytest.raises(RuntimeError, match="device"):
            unrolled_states(training.spec, there, inputs, 1)


def test_a_checkpoint_of_any_device_is_on_the_cpu(bundle: Path, data: Path, tmp_path: Path) -> None:
    training = Training(bundle, data, QUICK)
    training.begin()
    training.step()
    checkpoint.save(tmp_path, training.state())
    state = checkpoint.load(tmp_path)
    assert state is not None
    assert {tensor.device.type for tensor in state["weights"].values()} == {"cpu"}


def test_a_damaged_checkpoint_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / checkpoint.FILE).write_bytes(b"nothing that torch would write")
    with pytest.raises(SapwoodError, match="remove it to train from the beginning") as caught:
        checkpoint.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_another_kind_is_refused(bundle: Path, data: Path) -> None:
    training = Training(bundle, data, QUICK)
    training.begin()
    other = Training(bundle, data, replace(QUICK, kind="parallel_heads"))
    with pytest.raises(SapwoodError, match="use another folder"):
        other.restore(training.state())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "oracle"}, "unknown kind of draft 'oracle'"),
        ({"tokens": None}, "give minutes or tokens"),
        ({"minutes": 0.0}, "minutes is 0.0, must be positive"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SapwoodError, match=message):
        train(tmp_path, tmp_path, tmp_path, tmp_path, replace(QUICK, **change), print)


def test_a_round_draws_every_row_that_is_not_held_out_once(data: Path) -> None:
    sampler = Sampler(data, rows=24, seed=1)
    drawn = [
        window for _ in range(200) for window in sampler.draw(1) if sampler.state().rounds == 1
    ]
    seen = Counter(
        (piece.shard.name, piece.begin + row)
        for window in drawn
        for piece in window
        for row in range(piece.rows)
    )
    expected = set()
    for number in range(2):
        shard = open_shard(data, shard_name(number))
        for sequence in sequences(shard, TRAINED):
            begin, end = shard.offsets[sequence : sequence + 2]
            expected |= {(shard.name, row) for row in range(begin, end - 1)}
    assert set(seen) == expected
    assert set(seen.values()) == {1}
    assert all(sum(piece.rows for piece in window) <= 24 for window in drawn)


def test_a_shard_that_appears_later_joins_in(data: Path, tmp_path: Path) -> None:
    def link(number: int) -> None:
        for path in data.glob(f"{shard_name(number)}.*"):
            (tmp_path / path.name).symlink_to(path)

    link(0)
    sampler = Sampler(tmp_path, rows=64, seed=1)
    sampler.draw(1)
    link(1)
    shard = open_shard(tmp_path, shard_name(0))
    in_a_round = len(list(windows(shard, sequences(shard, TRAINED), 64)))
    first = sampler.draw(in_a_round - 1)
    second = sampler.draw(in_a_round)
    assert {piece.shard.name for window in first for piece in window} == {shard_name(0)}
    assert {piece.shard.name for window in second for piece in window} == {
        shard_name(0),
        shard_name(1),
    }


def test_only_rows_that_foretell_what_the_target_wrote_count(data: Path) -> None:
    shard = open_shard(data, shard_name(0))
    (window,) = windows(shard, [5], 64)
    (piece,) = window
    start = int(shard.start[5])
    assert piece.rows == LENGTH - 1
    # Row i foretells token i + 2, so the first that counts is two before the target's first token.
    assert piece.counted_from == start - 2


def test_packed_weights_are_read_back_as_they_were_measured(bundle: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    tensors = {
        "layer.output": generator.standard_normal((64, 64)).astype(np.float32),
        "fuse": generator.standard_normal((64, 128)).astype(np.float32),
        "output_norm": generator.standard_normal(64).astype(np.float32),
        "head": generator.standard_normal((40, 64)).astype(np.float32),
    }
    ids = np.sort(generator.choice(512, 40, replace=False)).astype(np.int32)
    weights = DraftWeights("head", (1, 2), ids, tensors)
    formats = DraftFormats()
    write_draft(tmp_path / "draft", bundle, "tiny", weights, formats, {"seed": 1}, "card\n")
    back = read_draft(tmp_path / "draft")
    assert back.vocabulary_ids.tolist() == ids.tolist()
    assert back.feature_layers == (1, 2)
    expected = dequantised({n: torch.from_numpy(value) for n, value in tensors.items()}, formats)
    for name, value in expected.items():
        np.testing.assert_array_equal(back.tensors[name], value.numpy())
    manifest = json.loads((tmp_path / "draft" / "manifest.json").read_text())
    entries = manifest["draft"]["tensors"]
    assert entries["vocabulary_ids"]["format"] == "int32"
    assert entries["layer.output"]["format"] == "int4_g32_min"
    assert entries["fuse"]["format"] == "int8_g32"
    assert entries["head"]["format"] == "int8_g32"
    for entry in manifest["files"]:
        assert (tmp_path / "draft" / entry["name"]).stat().st_size == entry["bytes"]


def test_the_subset_is_the_most_frequent_tokens_in_ascending_order() -> None:
    counts = token_counts([np.array([5, 5, 1], np.int32), np.array([3, 3, 3], np.int32)], 8)
    assert counts.tolist() == [0, 1, 0, 3, 0, 2, 0, 0]
    assert most_frequent(counts, 2).tolist() == [3, 5]
    assert most_frequent(counts, 4).tolist() == [0, 1, 3, 5]


def test_what_a_text_held_before_needs_no_place_in_the_subset(bundle: Path, tmp_path: Path) -> None:
    hidden = np.zeros((7, 1, 4), np.float16)
    first, second = np.array([4, 9, 9, 5, 4, 9, 5], np.int32), np.array([4, 5, 6], np.int32)
    texts = [Text(first, 3, 0, 0.0, hidden), Text(second, 0, 0, 0.0, hidden[:3])]
    write_shard(tmp_path, shard_name(0), texts)
    found = FirstOccurrences.of([open_shard(tmp_path, shard_name(0))], 512)
    assert found.written == 7
    assert {int(t): int(found.counts[t]) for t in found.counts.nonzero()[0]} == {4: 1, 5: 2, 6: 1}
    sizes = weigh_sizes(read_spec(bundle), found, lambda *_: 1.0, [1, 2, 3])
    assert [size.coverage for size in sizes] == pytest.approx([5 / 7, 6 / 7, 1])


def test_a_dearer_head_makes_the_best_subset_smaller(bundle: Path) -> None:
    spec = read_spec(bundle)
    counts = (1000 / (1 + np.arange(512))).astype(np.int64)

    def chosen(price_of_a_row: float) -> int:
        def cost(form: str, outputs: int, inputs: int) -> float:
            of_the_subset = form == "int8_g32" and outputs < spec.vocabulary_size
            return outputs * inputs * (price_of_a_row if of_the_subset else 1.0)

        occurrences = FirstOccurrences(counts, int(counts.sum()))
        return best_size(weigh_sizes(spec, occurrences, cost, [16, 32, 64, 128, 256]))

    assert chosen(0.0) == 256
    assert chosen(1.0) > chosen(50.0) == 16


def test_the_uncertainty_network_learns_a_probability() -> None:
    generator = torch.Generator().manual_seed(2)
    states = 3 + 2 * torch.randn(6000, 16, generator=generator)
    rejection = torch.sigmoid(states[:, 0] - 3)
    tensors = fit_uncertainty(states[:5000], rejection[:5000], units=8)
    predicted = predicted_rejection(tensors, states[5000:])
    observed = rejection[5000:]
    error = (predicted - observed).abs().mean()
    of_the_mean = (observed.mean() - observed).abs().mean()
    assert error < 0.4 * of_the_mean
    assert torch.corrcoef(torch.stack((predicted, observed)))[0, 1] > 0.95


def test_calibration_error_is_the_distance_from_what_is_observed() -> None:
    predicted = torch.tensor([0.1, 0.1, 0.9, 0.9])
    assert expected_calibration_error(predicted, predicted) == pytest.approx(0, abs=1e-6)
    observed = torch.tensor([0.0, 0.0, 1.0, 0.4])
    assert expected_calibration_error(predicted, observed) == pytest.approx(0.15, abs=1e-6)


def _held_out_figures(training: Training) -> Any:
    _, ids = choose_subset(training)
    weights = training.weights | {"head": training.target.head[ids]}
    return figures(compare_with_target(training, weights, ids, training.batches(MEASURED), 10_000))
