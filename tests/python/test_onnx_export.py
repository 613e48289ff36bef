"""`export_onnx` on bundles of every family: the files it writes, and what they compute."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from graph_tools import SLOTS, read_and_branch, tiny_bundle, traced  # noqa: E402
from operator_graphs import operators_library  # noqa: E402
from sapwood.errors import SapwoodError  # noqa: E402
from sapwood_export.bundle import read_manifest, read_spec, verify_bundle  # noqa: E402
from sapwood_export.bundle_writer import add_extra_files  # noqa: E402
from sapwood_export.command import export  # noqa: E402
from sapwood_export.models.session import DecoderSession  # noqa: E402
from sapwood_export.models.weights import weights_from_bundle  # noqa: E402
from sapwood_export.onnx import command, surgery  # noqa: E402
from sapwood_export.onnx.command import REFERENCE_GRAPH, export_onnx  # noqa: E402
from sapwood_export.onnx.compare import OnnxSession, divergences  # noqa: E402
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, Rewrite  # noqa: E402
from sapwood_export.onnx.trace import unfused_graph  # noqa: E402
from sapwood_export.operators.session import OperatorSession  # noqa: E402

FAMILIES = ("llama3", "qwen2", "gemma3")


@pytest.fixture(scope="module", params=FAMILIES)
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "bundle"
    shutil.copytree(tiny_bundle(request.param), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "unfused_graph", traced)  # saves a trace that other tests made
        export_onnx(folder, keep_reference=True)
    add_extra_files(folder, read_manifest(folder))
    return folder


def vocabulary(bundle: Path) -> int:
    return int(read_manifest(bundle)["target"]["spec"]["vocabulary_size"])


def test_the_reference_graph_has_the_logits_of_torch(bundle: Path) -> None:
    spec, weights = weights_from_bundle(bundle)
    expected = read_and_branch(DecoderSession(spec, weights, SLOTS), spec.vocabulary_size)
    actual = read_and_branch(OnnxSession(bundle / REFERENCE_GRAPH, SLOTS), spec.vocabulary_size)
    assert np.abs(actual - expected).max() < 1e-4


def test_the_reference_graph_needs_no_operator_of_ours(bundle: Path) -> None:
    model = onnx.load(bundle / REFERENCE_GRAPH, load_external_data=False)
    assert {node.domain for node in model.graph.node} == {""}


def test_the_fused_graph_computes_what_the_torch_operators_say(bundle: Path) -> None:
    fused = OnnxSession(bundle / "target.onnx", SLOTS, operators_library())
    expected = read_and_branch(OperatorSession(bundle, SLOTS), vocabulary(bundle))
    actual = read_and_branch(fused, vocabulary(bundle))
    assert divergences(expected, actual).mean() < 1e-4


def test_the_onnxruntime_host_has_the_bits_of_the_native_host(bundle: Path) -> None:
    pytest.importorskip("sapwood._runtime", reason="sapwood is not built")
    from runtime_session import RuntimeSession
    from sapwood.hosts import onnxruntime_status, open_model

    if (missing := onnxruntime_status()) is not None:
        pytest.skip(missing)
    logits = [
        read_and_branch(
            RuntimeSession(open_model(bundle, host=host, threads=2), SLOTS), vocabulary(bundle)
        )
        for host in ("native", "onnxruntime")
    ]
    assert logits[0].tobytes() == logits[1].tobytes()


def test_onnxruntime_on_64_bit_arm_gives_the_native_hosts_tokens(bundle: Path) -> None:
    pytest.importorskip("sapwood._runtime", reason="sapwood is not built")
    from answer_program import arm64_onnxruntime_program

    program = arm64_onnxruntime_program()
    expected = program.ids(bundle, "native", "plain", processor="cortex-a76")
    for mode in ("plain", "dynamic"):
        assert program.ids(bundle, "onnxruntime", mode, processor="cortex-a76") == expected


def test_fused_and_unfused_graph_agree_but_for_the_rounding_of_activations(bundle: Path) -> None:
    fused = OnnxSession(bundle / "target.onnx", SLOTS, operators_library())
    expected = read_and_branch(OnnxSession(bundle / REFERENCE_GRAPH, SLOTS), vocabulary(bundle))
    actual = read_and_branch(fused, vocabulary(bundle))
    assert 0 < divergences(expected, actual).mean() < 0.01


def test_weights_are_the_bundles_own_bytes_at_the_manifests_offsets(bundle: Path) -> None:
    manifest = read_manifest(bundle)
    tensors = manifest["target"]["tensors"]
    model = onnx.load(bundle / "target.onnx", load_external_data=False)
    names = set()
    for tensor in model.graph.initializer:
        assert tensor.data_location == onnx.TensorProto.EXTERNAL
        place = {entry.key: entry.value for entry in tensor.external_data}
        entry = tensors[tensor.name]
        assert place["location"] == manifest["target"]["weights"]
        assert (int(place["offset"]), int(place["length"])) == (entry["offset"], entry["bytes"])
        assert int(place["offset"]) % 64 == 0
        packed = entry["format"] != "float32"
        expected = (onnx.TensorProto.UINT8, [entry["bytes"]])
        assert (tensor.data_type, list(tensor.dims)) == (
            expected if packed else (onnx.TensorProto.FLOAT, entry["shape"])
        )
        names.add(tensor.name)
    assert names == set(tensors)
    assert (bundle / "target.onnx").stat().st_size < 64 * 1024


def test_inputs_and_outputs_are_named_typed_and_dynamic(bundle: Path) -> None:
    model = onnx.load(bundle / "target.onnx", load_external_data=False)
    spec = read_manifest(bundle)["target"]["spec"]
    assert {opset.domain: opset.version for opset in model.opset_import}[DOMAIN] == 1

    def describe(values: object) -> dict[str, tuple[int, list[object]]]:
        return {
            value.name: (
                value.type.tensor_type.elem_type,
                [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim],
            )
            for value in values  # type: ignore[attr-defined]
        }

    whole, half, single = onnx.TensorProto.INT32, onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    inputs: dict[str, tuple[int, list[object]]] = {
        "token_ids": (whole, ["rows"]),
        "positions": (whole, ["rows"]),
        "slots": (whole, ["rows"]),
        "context_slots": (whole, ["context"]),
        "path_slots": (whole, ["paths"]),
        "path_ranges": (whole, ["rows", 2]),
        "output_rows": (whole, ["outputs"]),
    }
    outputs = {"logits": (single, ["outputs", spec["vocabulary_size"]])}
    for layer in range(spec["layers"]):
        heads, head_dim = spec["kv_heads"], spec["head_dim"]
        keys = (half, [heads, "tiles", head_dim, 16])
        values = (half, [heads, "slots", head_dim])
        inputs |= {f"past_keys.{layer}": keys, f"past_values.{layer}": values}
        outputs |= {f"present_keys.{layer}": keys, f"present_values.{layer}": values}
    assert describe(model.graph.input) == inputs
    assert describe(model.graph.output) == outputs


def test_every_value_of_the_fused_graph_has_a_type_and_a_shape(bundle: Path) -> None:
    model = onnx.load(bundle / "target.onnx", load_external_data=False)
    known = {value.name for value in [*model.graph.value_info, *model.graph.output]}
    assert {name for node in model.graph.node for name in node.output} <= known


def test_export_in_the_onnx_format_lists_the_graph_in_the_manifest(tmp_path: Path) -> None:
    source = tiny_bundle("qwen3").parent / "qwen3-source"
    report = export(source, tmp_path / "bundle", format="onnx")
    manifest = verify_bundle(report.output)
    assert manifest["target"]["onnx"] == "target.onnx"
    assert "target.onnx" in {entry["name"] for entry in manifest["files"]}
    assert not (report.output / REFERENCE_GRAPH).exists()


def test_a_decoder_that_torch_cannot_trace_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        error = torch.onnx.OnnxExporterError("how to report this to torch")
        raise error from RuntimeError("first line\nsecond line")

    monkeypatch.setattr(torch.onnx, "export", refuse)
    spec = read_spec(tiny_bundle("qwen2"))
    with pytest.raises(SapwoodError, match=r"cannot trace the decoder \(first line\)") as error:
        unfused_graph(spec)
    assert "\n" not in str(error.value)


def test_an_export_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = Rewrite("never-matches", lambda spec: 1, lambda work: 0)
    monkeypatch.setattr(surgery, "REWRITES", (never,))
    monkeypatch.setattr(command, "unfused_graph", traced)
    source = tiny_bundle("qwen2").parent / "qwen2-source"
    with pytest.raises(SapwoodError, match="rewrite 'never-matches' matched 0 of 1"):
        export(source, tmp_path / "bundle", format="onnx")
    assert list(tmp_path.iterdir()) == []
