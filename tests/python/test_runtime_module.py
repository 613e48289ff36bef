"""The compiled module's parts, as twins of the C++ tests, and its stub file."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from conftest import REPOSITORY
from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood_export.packing import pack
from sapwood_export.quantize.formats import FORMATS, QuantizedRows, linear_format

STUB = REPOSITORY / "python_bindings" / "sapwood" / "_runtime.pyi"


def test_the_stub_file_is_current(tmp_path: Path) -> None:
    made = tmp_path / "_runtime.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "sapwood._runtime"]
    subprocess.run([*command, "-o", str(made)], check=True)
    assert made.read_text() == STUB.read_text(), (
        f"run: {' '.join(command)} -o {STUB.relative_to(REPOSITORY)}"
    )


# ---- memory -------------------------------------------------------------------------------------


def test_slots_are_given_out_once_and_come_back() -> None:
    slots = _runtime.KvSlotBitmap(130)
    first, second = slots.allocate(70), slots.allocate(60)
    assert first == list(range(70))
    assert second == list(range(70, 130))
    assert slots.allocate(1) is None
    slots.free(first[10:20])
    assert slots.allocate(10) == first[10:20]
    assert (slots.taken, slots.available, slots.peak) == (130, 0, 130)


def test_a_slot_that_is_not_taken_is_refused_by_number() -> None:
    slots = _runtime.KvSlotBitmap(8)
    slots.allocate(2)
    with pytest.raises(SapwoodError, match="5"):
        slots.free([5])
    with pytest.raises(SapwoodError):
        slots.free([99])
    assert slots.taken == 2


def test_copying_a_slot_copies_every_layer() -> None:
    store = _runtime.KvStore.create(layers=3, kv_heads=2, head_dim=16, slots=20)
    assert store.slots == 32
    for layer in range(store.layers):
        keys = store.keys(layer).view(np.uint16).reshape(2, 2, 16, 16)
        values = store.values(layer).view(np.uint16).reshape(2, 32, 16)
        keys[:, 0, :, 3] = 100 + layer
        values[:, 3, :] = 200 + layer
    store.copy_slot(3, 17)
    for layer in range(store.layers):
        assert (
            store.keys(layer).view(np.uint16).reshape(2, 2, 16, 16)[:, 1, :, 1] == 100 + layer
        ).all()
        assert (
            store.values(layer).view(np.uint16).reshape(2, 32, 16)[:, 17, :] == 200 + layer
        ).all()


def test_an_int8_cache_takes_a_bit_more_than_half() -> None:
    half = _runtime.KvStore.create(layers=3, kv_heads=2, head_dim=64, slots=20)
    store = _runtime.KvStore.create(layers=3, kv_heads=2, head_dim=64, slots=20, format="int8")
    assert (half.format, store.format) == ("float16", "int8")
    assert half.bytes_per_slot == 3 * 2 * 2 * 64 * 2
    assert store.bytes_per_slot == 3 * 2 * (64 + 2 * 4 + 64 + 4)
    assert store.keys(0).dtype == np.uint8
    assert store.keys(0).size + store.values(0).size == store.bytes_per_slot // 3 * store.slots
    with pytest.raises(SapwoodError, match=r'^kv must be float16 or int8, not "int3"'):
        _runtime.KvStore.create(layers=3, kv_heads=2, head_dim=64, slots=20, format="int3")


def test_pieces_of_a_pool_are_shared_and_come_back() -> None:
    pool = _runtime.UnifiedPool.create(1 << 16, kind="host")
    handle = pool.allocate(5000)
    view = handle.array()
    view[:] = 7
    other = handle.share()
    assert handle.references == 3  # the array holds one
    handle.release()
    assert (handle.references, handle.nbytes) == (0, 0)
    with pytest.raises(SapwoodError, match="released"):
        handle.array()
    assert (other.array() == 7).all()
    assert pool.available_bytes < pool.nbytes == 1 << 16
    with pytest.raises(SapwoodError, match="in one run"):
        pool.allocate(1 << 16)
    other.release()
    del view
    assert pool.available_bytes == pool.nbytes
    with pytest.raises(SapwoodError, match="no descriptor"):
        pool.export_fd()


def test_a_pool_is_exported_and_imported_as_the_same_bytes() -> None:
    pool = _runtime.UnifiedPool.create(3 * mmap.PAGESIZE, kind="memfd")
    pool.allocate(1)
    kept = pool.allocate(1)
    handle = pool.allocate(mmap.PAGESIZE)
    assert (kept.offset, handle.offset) == (0, mmap.PAGESIZE)
    descriptor = pool.export_fd()
    try:
        with mmap.mmap(descriptor, pool.nbytes) as mapped:
            with handle.cpu_access("w"):
                handle.array()[:3] = (1, 2, 3)
            assert mapped[mmap.PAGESIZE : mmap.PAGESIZE + 3] == bytes((1, 2, 3))
        again = _runtime.UnifiedPool.import_fd(descriptor, pool.nbytes)
        assert (again.kind, again.nbytes) == ("memfd", pool.nbytes)
        with pytest.raises(SapwoodError, match="are needed"):
            _runtime.UnifiedPool.import_fd(descriptor, pool.nbytes + 1)
    finally:
        os.close(descriptor)


def test_what_is_no_shared_memory_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(10000))
    with (tmp_path / "file").open("r+b") as file, pytest.raises(SapwoodError, match="imported"):
        _runtime.UnifiedPool.import_fd(file.fileno(), 4096)
    with pytest.raises(SapwoodError, match="Bad file descriptor"):
        _runtime.UnifiedPool.import_fd(-1, 4096)
    with pytest.raises(SapwoodError, match=r'must be dma_heap, .*, not "tape"'):
        _runtime.UnifiedPool.create(4096, kind="tape")
    with pytest.raises(SapwoodError, match="r, w or rw"):
        _runtime.UnifiedPool.create(4096).allocate(1).cpu_access("x")


def test_the_default_pool_is_of_the_best_kind_here() -> None:
    kinds = _runtime.memory_kinds()
    assert [name for name, _ in kinds] == [
        "dma_heap", "udmabuf", "hardware_buffer", "memfd", "host"
    ]  # fmt: skip
    best = next(name for name, missing in kinds if missing is None)
    assert _runtime.UnifiedPool.create(1).kind == best


def test_a_timeline_wakes_whom_it_concerns_and_misses_deadlines() -> None:
    timeline = _runtime.HostTimeline(3)
    assert timeline.wait(3) == "reached"
    assert timeline.wait(4, timeout=0.001) == "missed"
    signaller = threading.Timer(0.01, timeline.signal, (5,))
    signaller.start()
    assert timeline.wait(5, timeout=60) == "reached"
    signaller.join()
    with pytest.raises(SapwoodError, match="only rise"):
        timeline.signal(5)
    abandoner = threading.Timer(0.01, timeline.abandon)
    abandoner.start()
    assert timeline.wait(6) == "abandoned"
    abandoner.join()
    assert (timeline.value, timeline.wait(5)) == (5, "reached")
    with pytest.raises(SapwoodError, match="abandoned"):
        timeline.signal(6)


# ---- kernels ------------------------------------------------------------------------------------


@pytest.fixture(params=_runtime.runnable_kernels())
def table(request: pytest.FixtureRequest) -> _runtime.KernelTable:
    return _runtime.kernels(request.param)


def packed(
    name: str, outputs: int, inputs: int
) -> tuple[_runtime.PackedLinear, NDArray[np.float32]]:
    """A random layer, and its weights as numbers."""
    generator = np.random.default_rng(outputs)
    form = linear_format(name)
    groups = (outputs, inputs // form.group)
    weights = QuantizedRows(
        generator.integers(0, 2**form.bits, (outputs, inputs), dtype=np.uint8),
        generator.uniform(0.01, 0.1, groups).astype(np.float16),
        generator.uniform(-1, 0, groups).astype(np.float16) if form.has_min else None,
    )
    data = pack(form, weights).reshape(-1)
    return _runtime.PackedLinear(data, outputs, inputs, name), weights.dequantize(form)


@pytest.mark.parametrize("name", FORMATS)
def test_a_linear_layer_is_a_product_with_quantised_rows(
    table: _runtime.KernelTable, name: str
) -> None:
    layer, weights = packed(name, 40, 256)
    x = np.random.default_rng(1).standard_normal((5, 256), dtype=np.float32)
    codes, scales, sums = table.quantize_rows(x)
    rows = codes.astype(np.float64) * np.repeat(scales, 32, axis=1)
    assert np.abs(rows - x).max() <= np.abs(x).max() / 127
    np.testing.assert_array_equal(sums, codes.reshape(5, 8, 32).sum(axis=2, dtype=np.int32))
    np.testing.assert_allclose(table.linear(layer, x), rows @ weights.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_has_the_same_bits_beside_any_others_on_any_kernels(name: str) -> None:
    layer, _ = packed(name, 48, 128)
    x = np.random.default_rng(2).standard_normal((64, 128), dtype=np.float32)
    reference = _runtime.kernels("scalar").linear(layer, x)
    for kernels in map(_runtime.kernels, _runtime.runnable_kernels()):
        for rows in (1, 2, 3, 5, 8, 13, 33, 64):
            assert kernels.linear(layer, x[:rows]).tobytes() == reference[:rows].tobytes()


def test_rows_are_taken_in_the_cheapest_blocks() -> None:
    plan = _runtime.cheapest_row_plan([1, 2, 4, 8], [1.0, 1.5, 2.0, 5.0])
    assert plan[:9] == [1, 2, 2, 4, 4, 4, 4, 4, 4]
    assert len(plan) == 64
    with pytest.raises(SapwoodError, match="above 0"):
        _runtime.cheapest_row_plan([1], [0.0])
    with pytest.raises(SapwoodError, match="rise from 1"):
        _runtime.cheapest_row_plan([2], [1.0])


def test_the_measured_plan_uses_only_blocks_that_the_kernels_have(
    table: _runtime.KernelTable,
) -> None:
    plan = table.row_plan("int4_g32_min")
    assert set(plan) <= set(table.row_blocks)
    assert all(rows <= left for left, rows in enumerate(plan, 1))
    with pytest.raises(SapwoodError, match="unknown weight format"):
        table.row_plan("int3")


def test_rms_norm_and_log_softmax_are_what_they_are_called(table: _runtime.KernelTable) -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((3, 96), dtype=np.float32)
    weight = generator.standard_normal(96, dtype=np.float32)
    expected = weight * x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(table.rms_norm(x, weight, 1e-5), expected, rtol=1e-5)
    exponents = np.exp(table.log_softmax(x[0]).astype(np.float64))
    assert exponents.sum() == pytest.approx(1, abs=1e-5)


def test_the_rotary_table_is_cosines_then_sines() -> None:
    frequencies = (10000.0 ** -(np.arange(8) / 8)).astype(np.float32)
    table = _runtime.rotary_table([0, 1, 1000], frequencies)
    angles = np.array([[0], [1], [1000]], np.float64) * frequencies
    expected = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_allclose(table, expected, atol=1e-6)


def test_weights_of_another_size_are_refused() -> None:
    with pytest.raises(SapwoodError, match="bytes"):
        _runtime.PackedLinear(np.zeros(10, np.uint8), 16, 32, "int4_g32")
    with pytest.raises(SapwoodError, match="int5"):
        _runtime.PackedLinear(np.zeros(10, np.uint8), 16, 32, "int5")
    with pytest.raises(SapwoodError, match="mmx"):
        _runtime.kernels("mmx")


# ---- trees, sampling, verification --------------------------------------------------------------


def small_tree() -> _runtime.DraftTree:
    tree = _runtime.DraftTree()
    first = tree.add(-1, 3, -0.5, acceptance=0.5)
    tree.add(-1, 4, -1.0, acceptance=0.25)
    tree.add(first, 1, -0.1, acceptance=0.5)
    return tree


def test_a_tree_knows_its_paths() -> None:
    tree = small_tree()
    assert len(tree) == 3
    assert tree.tokens == [3, 4, 1]
    assert tree.path(2) == [0, 2]
    assert tree.depth(2) == tree.max_depth == 2
    assert tree.path_acceptance(2) == 0.25
    assert tree.expected_tokens == pytest.approx(1 + 0.5 + 0.25 + 0.25)
    assert [node["parent"] for node in json.loads(tree.to_json())["nodes"]] == [-1, -1, 0]
    with pytest.raises(SapwoodError):
        tree.add(-1, 3, -0.5)
    with pytest.raises(SapwoodError):
        tree.token(3)


def test_target_draw_follows_the_target_into_the_tree() -> None:
    logits = np.zeros((4, 6), np.float32)
    for row, best in enumerate((3, 1, 0, 5)):  # the root, then nodes 0, 1, 2
        logits[row, best] = 5
    sampler = _runtime.Sampler(6)
    sampler.start(_runtime.SamplingOptions())
    assert _runtime.target_draw(small_tree(), logits, sampler, 0, 10) == ([0, 2], [3, 1, 5])
    sampler.start(_runtime.SamplingOptions())
    assert _runtime.target_draw(small_tree(), logits, sampler, 0, 2)[1] == [3, 1]
    sampler.start(_runtime.SamplingOptions())
    assert _runtime.target_draw(small_tree(), logits, sampler, 0, 10, [1])[1] == [3, 1]


def test_the_sampling_transform_is_hugging_faces() -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    logits = np.random.default_rng(4).normal(0, 3, 50).astype(np.float32)
    history = [1, 7, 7, 20]
    sampler = _runtime.Sampler(50)
    for options in (
        {"temperature": 0.7},
        {"temperature": 1.3, "top_k": 9},
        {"temperature": 1.0, "top_p": 0.7},
        {"temperature": 1.0, "min_p": 0.2},
        {"temperature": 0.9, "repetition_penalty": 1.4, "top_k": 20, "top_p": 0.9, "min_p": 0.05},
    ):
        sampler.start(_runtime.SamplingOptions(**options), history)
        generation = transformers.generation.logits_process
        steps = [
            generation.RepetitionPenaltyLogitsProcessor(options.get("repetition_penalty", 1.0)),
            generation.TemperatureLogitsWarper(options["temperature"]),
        ]
        if "top_k" in options:
            steps.append(generation.TopKLogitsWarper(int(options["top_k"])))
        if "top_p" in options:
            steps.append(generation.TopPLogitsWarper(options["top_p"]))
        if "min_p" in options:
            steps.append(generation.MinPLogitsWarper(options["min_p"]))
        scores = torch.from_numpy(logits)[None]
        for step in steps:
            scores = step(torch.tensor([history]), scores)
        expected = torch.log_softmax(scores[0].double(), -1).numpy()
        np.testing.assert_allclose(sampler.law(logits), expected, atol=1e-5, err_msg=str(options))


def test_the_uniform_of_a_position_depends_on_nothing_else() -> None:
    values = [_runtime.counter_uniform(seed, index) for seed in range(40) for index in range(40)]
    assert values == [_runtime.counter_uniform(s, i) for s in range(40) for i in range(40)]
    assert len(set(values)) == len(values)
    assert all(0 <= value < 1 for value in values)
    assert abs(np.mean(values) - 0.5) < 0.03


def test_the_automaton_knows_what_followed() -> None:
    automaton = _runtime.SuffixAutomaton(100)
    for token in (1, 2, 3, 1, 2, 4, 1, 2):
        automaton.append(token)
    assert automaton.longest_seen_suffix() == 2
    assert dict(automaton.followers([1, 2]) or []) == {3: 1, 4: 1}
    assert automaton.followers([9]) is None


# ---- models -------------------------------------------------------------------------------------


def test_a_batch_that_contradicts_itself_is_refused(tiny_bundle: Path) -> None:
    model = _runtime.open_native_model(str(tiny_bundle), threads=1)
    spec = model.spec
    store = _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, 32)
    good = {
        "tokens": [5], "positions": [0], "slots": [0], "context_slots": [], "path_slots": [0],
        "path_begin": [0], "path_end": [1], "output_rows": [0],
    }  # fmt: skip
    assert model.forward(store, **good).shape == (1, spec.vocabulary_size)
    for change in (
        {"tokens": [spec.vocabulary_size]},
        {"slots": [32]},
        {"positions": [3]},
        {"path_end": [2]},
        {"output_rows": [1]},
    ):
        with pytest.raises(SapwoodError):
            model.forward(store, **{**good, **change})


def test_hidden_states_are_those_of_the_layers_asked_for(tiny_bundle: Path) -> None:
    model = _runtime.open_native_model(str(tiny_bundle), threads=1)
    spec = model.spec
    store = _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, 32)
    rows = {
        "tokens": [5, 7], "positions": [0, 1], "slots": [0, 1], "context_slots": [],
        "path_slots": [0, 1], "path_begin": [0, 0], "path_end": [1, 2], "output_rows": [],
    }  # fmt: skip
    assert model.hidden_states().shape == (0, 0, spec.hidden_size)
    model.keep_hidden_states([0, spec.layers])
    model.forward(store, **rows)
    states = model.hidden_states()
    assert states.shape == (2, 2, spec.hidden_size)
    assert np.isfinite(states).all()
    assert (states[:, 0] != states[:, 1]).any()
    with pytest.raises(SapwoodError, match="ascending"):
        model.keep_hidden_states([spec.layers + 1])
