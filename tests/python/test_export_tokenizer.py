"""Tokenizers: ids as Hugging Face gives them, one BOS where the family has one, all EOS ids."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors

from sapwood.errors import SapwoodError
from sapwood_export.command import export
from sapwood_export.gguf_tokenizer import tokenizer_from_gguf
from sapwood_export.sources import open_source
from sapwood_export.sources.gguf_header import GgufFile
from sapwood_export.tokenizer import TokenizerFiles, tokenizer_from_folder
from tiny_models import (
    CHAT_TEMPLATE,
    add_gguf_tokenizer,
    tiny_config,
    tiny_weights,
    write_folder,
    write_tokenizer,
)
from tiny_tokenizers import (
    BYTE,
    CONTROL,
    CORPUS,
    NORMAL,
    SPACE,
    UNUSED,
    USER_DEFINED,
    byte_level_tokenizer,
    gemma_pieces,
    gemma_tokenizer_json,
)

gguf = pytest.importorskip("gguf")

VOCABULARY = 600
ALPHABET = (
    list("abc ABC 019 \n\t\r.,'s'll!?()[]{}<>|_-=+\\\"the")
    + list("éüñß森林дер😀👩‍👧🇩🇪\u200b\u00a0\u3000ا한ไ\u0301\ufeff\u0085")
    + ["  ", "    ", "\n\n", "\r\n", "don't", "I'LL", " the", "123456", "e\u0301", "<unk>", SPACE]
)


def texts(count: int = 400) -> list[str]:
    generator = random.Random(7)
    drawn = [
        "".join(generator.choice(ALPHABET) for _ in range(generator.randint(0, 30)))
        for _ in range(count)
    ]
    return [*CORPUS.splitlines(keepends=True), *drawn]


def metadata_of(folder: Path, family: str) -> dict[str, Any]:
    """The tokenizer's keys of a tiny GGUF file."""
    path = folder / "tokenizer.gguf"
    writer = gguf.GGUFWriter(path, family)
    add_gguf_tokenizer(writer, family)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return GgufFile(path).metadata


def loaded(files: TokenizerFiles) -> Tokenizer:
    return Tokenizer.from_str(files.json_bytes.decode())


def assert_same_ids(actual: Tokenizer, expected: Tokenizer) -> None:
    for text in texts():
        for special in (False, True):
            ids = expected.encode(text, add_special_tokens=special).ids
            assert actual.encode(text, add_special_tokens=special).ids == ids, repr(text)
            assert actual.decode(ids) == expected.decode(ids), repr(text)


# How the published tokenizer.json files of the three families cut text: normaliser, first
# pre-tokenizer, whether ByteLevel uses its own pattern, whether whole words skip the merges.
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
PUBLISHED: dict[str, tuple[Any, Any, bool, bool]] = {
    "smollm": (None, pre_tokenizers.Digits(individual_digits=True), True, False),
    "llama-bpe": (
        None,
        pre_tokenizers.Split(
            Regex(CONTRACTIONS + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" + REST), "isolated"
        ),
        False,
        True,
    ),
    "qwen2": (
        normalizers.NFC(),
        pre_tokenizers.Split(
            Regex(CONTRACTIONS + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" + REST), "isolated"
        ),
        False,
        False,
    ),
}


@pytest.mark.parametrize("pre", sorted(PUBLISHED))
def test_byte_level_ids_are_those_of_the_published_tokenizers(tmp_path: Path, pre: str) -> None:
    metadata = metadata_of(tmp_path, "llama") | {"tokenizer.ggml.pre": pre}
    normalizer, first, own_pattern, ignore_merges = PUBLISHED[pre]
    description = json.loads(byte_level_tokenizer().to_str())
    description["model"]["ignore_merges"] = ignore_merges
    expected = Tokenizer.from_str(json.dumps(description))
    if normalizer is not None:
        expected.normalizer = normalizer
    expected.pre_tokenizer = pre_tokenizers.Sequence(
        [first, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=own_pattern)]
    )
    assert_same_ids(loaded(tokenizer_from_gguf(tmp_path, metadata, VOCABULARY)), expected)


def test_gemmas_merges_are_those_of_its_own_tokenizer(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "gemma3")
    actual = loaded(tokenizer_from_gguf(tmp_path, metadata, VOCABULARY))
    assert_same_ids(actual, Tokenizer.from_str(gemma_tokenizer_json()))


def sentencepiece_ids(text: str) -> list[int]:
    """SentencePiece's BPE by its definition: join the best-scored neighbours while there are."""
    pieces = gemma_pieces()
    ids = {piece: token_id for token_id, (piece, _, _) in enumerate(pieces)}
    scores = {piece: score for piece, score, kind in pieces if kind == NORMAL}
    symbols = list(text.replace(" ", SPACE))
    while True:
        best = max(
            (
                (scores[left + right], -index)
                for index, (left, right) in enumerate(itertools.pairwise(symbols))
                if left + right in scores
            ),
            default=None,
        )
        if best is None:
            break
        index = -best[1]
        symbols[index : index + 2] = [symbols[index] + symbols[index + 1]]
    result = []
    for symbol in symbols:
        if symbol in ids:
            result.append(ids[symbol])
        else:
            result += [ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
    return result


def test_gemmas_ids_are_those_of_sentencepieces_definition(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "gemma3")
    tokenizer = loaded(tokenizer_from_gguf(tmp_path, metadata, VOCABULARY))
    generator = random.Random(8)
    words = CORPUS.split()
    for _ in range(300):
        # One space between words: runs of spaces are pieces that the author fixed.
        text = " ".join(generator.choice(words) for _ in range(generator.randint(1, 12)))
        text += generator.choice(["", "é", "森", "😀", "\t", "zzz"])
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert ids == sentencepiece_ids(text), repr(text)


def test_the_tiny_gemma_agrees_with_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    metadata = metadata_of(tmp_path, "gemma3")
    files = tokenizer_from_gguf(tmp_path, metadata, VOCABULARY)
    model = json.loads(files.json_bytes)["model"]
    reference = transformers.GemmaTokenizer(
        vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]]
    )
    tokenizer = loaded(files)
    for text in texts(150):
        if "\n\n" in text or SPACE in text:
            continue  # transformers has not been told of the pieces that the author fixed
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert ids == reference(text, add_special_tokens=False)["input_ids"], repr(text)


def test_a_folders_ids_are_those_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    for family in ("llama", "gemma3"):
        folder = tmp_path / family
        config = tiny_config(family)
        write_folder(folder, config, tiny_weights(config))
        reference = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(folder / "tokenizer.json")
        )
        files = tokenizer_from_folder(folder, VOCABULARY, [2])
        tokenizer = loaded(files)
        for text in texts(150):
            assert tokenizer.encode(text).ids == reference(text)["input_ids"], repr(text)


def test_fixed_runs_of_spaces_get_their_marks_back(tmp_path: Path) -> None:
    """llama.cpp's converter writes them as spaces."""
    metadata = metadata_of(tmp_path, "gemma3")
    metadata["tokenizer.ggml.tokens"] = [
        token.replace(SPACE, " ") if kind == USER_DEFINED else token
        for token, kind in zip(
            metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"], strict=True
        )
    ]
    assert "  " in metadata["tokenizer.ggml.tokens"]
    actual = loaded(tokenizer_from_gguf(tmp_path, metadata, VOCABULARY))
    assert_same_ids(actual, Tokenizer.from_str(gemma_tokenizer_json()))


def test_control_tokens_are_special_and_fixed_pieces_are_text(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "gemma3")
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"], "<unused3>"]
    metadata["tokenizer.ggml.token_type"] = np.append(
        metadata["tokenizer.ggml.token_type"], CONTROL
    )
    metadata["tokenizer.ggml.scores"] = np.append(metadata["tokenizer.ggml.scores"], -1000.0)
    tokenizer = loaded(tokenizer_from_gguf(tmp_path, metadata, VOCABULARY))
    special = {t.content: t.special for t in tokenizer.get_added_tokens_decoder().values()}
    assert special["<start_of_turn>"]
    assert special["<end_of_turn>"]
    assert not special["\n\n"]
    assert not special["<unused3>"]
    ids = tokenizer.encode("<start_of_turn>hi", add_special_tokens=False).ids
    assert ids[0] == 4
    assert tokenizer.decode(ids) == "hi"


def test_entries_that_only_pad_the_embedding_are_no_tokens(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "llama")
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"], "[PAD1]"]
    metadata["tokenizer.ggml.token_type"] = np.append(metadata["tokenizer.ggml.token_type"], UNUSED)
    tokenizer = loaded(tokenizer_from_gguf(tmp_path, metadata, VOCABULARY))
    assert tokenizer.token_to_id("[PAD1]") is None


@pytest.mark.parametrize(
    ("family", "changes", "bos"),
    [
        ("llama", {}, None),  # named, but never put in front: SmolLM2
        ("llama", {"tokenizer.ggml.add_bos_token": True}, 1),
        ("llama", {"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.add_bos_token": None}, 1),
        ("llama", {"tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.add_bos_token": None}, None),
        ("gemma3", {}, 2),
        ("gemma3", {"tokenizer.ggml.add_bos_token": None}, 2),
        ("gemma3", {"tokenizer.ggml.add_bos_token": False}, None),
    ],
)
def test_bos_is_what_the_family_really_prepends(
    tmp_path: Path, family: str, changes: dict[str, Any], bos: int | None
) -> None:
    metadata = {**metadata_of(tmp_path, family), "general.architecture": family, **changes}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    files = tokenizer_from_gguf(tmp_path, metadata, VOCABULARY)
    assert files.bos_token_id == bos
    tokenizer = loaded(files)
    bare = tokenizer.encode("tree", add_special_tokens=False).ids
    assert tokenizer.encode("tree").ids == ([] if bos is None else [bos]) + bare


def test_all_declared_ends_are_united(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "gemma3")
    metadata |= {"tokenizer.ggml.eot_token_id": 4, "tokenizer.ggml.eom_token_id": 0}
    files = tokenizer_from_gguf(tmp_path, metadata, VOCABULARY)
    assert files.eos_token_ids == (0, 1, 4, 5)  # 5: <end_of_turn>, which no key names


def test_a_qwen_also_ends_at_the_end_of_the_document(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "llama") | {"tokenizer.ggml.pre": "qwen2"}
    assert tokenizer_from_gguf(tmp_path, metadata, VOCABULARY).eos_token_ids == (0, 2)
    metadata |= {"tokenizer.ggml.pre": "smollm"}
    assert tokenizer_from_gguf(tmp_path, metadata, VOCABULARY).eos_token_ids == (2,)


@pytest.mark.parametrize(
    ("family", "changes", "words"),
    [
        ("llama", {"tokenizer.ggml.model": "bert"}, "unknown tokenizer 'bert'"),
        ("llama", {"tokenizer.ggml.model": "llama"}, "only Gemma's is known"),
        ("llama", {"tokenizer.ggml.pre": "tekken"}, "unknown pre-tokenizer 'tekken'; known are"),
        ("llama", {"tokenizer.ggml.merges": None}, "'tokenizer.ggml.merges' is missing"),
        ("llama", {"tokenizer.ggml.merges": ["ab"]}, "the merge 'ab' is not a pair"),
        ("llama", {"tokenizer.ggml.merges": ["nothing known"]}, "the tokenizer's merges"),
        ("llama", {"tokenizer.ggml.tokens": ["a", "a"]}, "'tokenizer.ggml.token_type' does not"),
        ("llama", {"tokenizer.ggml.eos_token_id": 9999}, "the eos token id 9999 is outside"),
        ("llama", {"tokenizer.ggml.eos_token_id": None}, "no file declares an end-of-text"),
        ("gemma3", {"tokenizer.ggml.scores": None}, "'tokenizer.ggml.scores' does not hold"),
    ],
)
def test_tokenizer_keys_that_cannot_be_are_named(
    tmp_path: Path, family: str, changes: dict[str, Any], words: str
) -> None:
    metadata = {**metadata_of(tmp_path, family), "general.architecture": family, **changes}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    if "tokenizer.ggml.eos_token_id" not in metadata:
        metadata["tokenizer.ggml.token_type"] = np.full(
            len(metadata["tokenizer.ggml.tokens"]), NORMAL
        )
    with pytest.raises(SapwoodError) as caught:
        tokenizer_from_gguf(tmp_path, metadata, VOCABULARY)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_larger_than_the_vocabulary_is_refused(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "llama")
    with pytest.raises(SapwoodError, match=r"ids reach \d+, the model's vocabulary has 100"):
        tokenizer_from_gguf(tmp_path, metadata, 100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = tiny_config("llama")
    return write_folder(tmp_path / "model", config, tiny_weights(config))


def from_folder(folder: Path, declared: Any = 2) -> TokenizerFiles:
    return tokenizer_from_folder(folder, 512, [declared])


def change_json(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_missing_tokenizer_is_named_with_its_remedy(folder: Path, tmp_path: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(SapwoodError, match=r"the tokenizer is missing: no tokenizer\.json; save"):
        export(folder, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("content", ["", "{}", '{"model": 3}', "[" * 100000])
def test_a_damaged_tokenizer_is_refused_in_one_line(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(SapwoodError, match=r"not a valid tokenizer\.json: ") as caught:
        from_folder(folder)
    assert "\n" not in str(caught.value)


def test_ends_of_all_the_folders_files_are_united(folder: Path) -> None:
    change_json(folder / "config.json", lambda value: value.update(eos_token_id=[300]))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [301, 302]}))
    change_json(
        folder / "tokenizer_config.json",
        lambda value: value.update(eos_token={"content": "<|endoftext|>"}),
    )
    # 0 by tokenizer_config.json; 2 is <|im_end|>, a special token that ends a turn.
    assert open_source(folder).tokenizer.eos_token_ids == (0, 2, 300, 301, 302)


@pytest.mark.parametrize("value", ["2", [2, "x"], True, 512, -1])
def test_an_end_that_is_no_id_is_refused(folder: Path, value: Any) -> None:
    with pytest.raises(SapwoodError, match="end-of-text id"):
        from_folder(folder, value)


def test_an_end_token_that_is_unknown_is_refused(folder: Path) -> None:
    change_json(folder / "tokenizer_config.json", lambda value: value.update(eos_token="<end>"))
    with pytest.raises(SapwoodError, match=r"'<end>' of tokenizer_config\.json is not in"):
        from_folder(folder)


def test_a_post_processor_that_prepends_bos_is_believed(folder: Path) -> None:
    assert from_folder(folder).bos_token_id is None
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    assert from_folder(folder).bos_token_id == 1
    change_json(folder / "tokenizer_config.json", lambda value: value.update(add_bos_token=False))
    assert from_folder(folder).bos_token_id is None


def test_a_configuration_that_adds_bos_is_believed(folder: Path) -> None:
    change_json(folder / "tokenizer_config.json", lambda value: value.update(add_bos_token=True))
    assert from_folder(folder).bos_token_id == 1
    change_json(folder / "tokenizer_config.json", lambda value: value.pop("bos_token"))
    with pytest.raises(SapwoodError, match="asks for a beginning-of-text token and names none"):
        from_folder(folder)


def test_truncation_and_padding_of_a_training_run_are_dropped(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = tokenizer.encode("the tree grows in the forest").ids
    tokenizer.enable_truncation(max_length=2)
    tokenizer.enable_padding(length=40)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert loaded(from_folder(folder)).encode("the tree grows in the forest").ids == expected


def test_tokens_that_only_the_configuration_declares_are_added(folder: Path) -> None:
    size = byte_level_tokenizer().get_vocab_size()
    declared = {str(size): {"content": "<think>", "special": True}}
    change_json(
        folder / "tokenizer_config.json", lambda value: value.update(added_tokens_decoder=declared)
    )
    assert loaded(from_folder(folder)).encode("<think>").ids == [size]
    declared = {str(size + 1): {"content": "<think>", "special": True}}
    change_json(
        folder / "tokenizer_config.json", lambda value: value.update(added_tokens_decoder=declared)
    )
    with pytest.raises(SapwoodError, match=f"gives '<think>' the id {size + 1}"):
        from_folder(folder)


def test_special_tokens_of_other_inputs_are_left_out(folder: Path) -> None:
    """Gemma 3's text models name a token for pictures that they do not embed."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    size = tokenizer.get_vocab_size()
    tokenizer.add_special_tokens([AddedToken("<image>", special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    kept = loaded(tokenizer_from_folder(folder, size, [2]))
    assert kept.token_to_id("<image>") is None
    assert kept.get_vocab_size() == size
    with pytest.raises(SapwoodError, match="they do not belong together"):
        tokenizer_from_folder(folder, size - 1, [2])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chat_template.jinja", "{{ from_file }}\n"),
        ("chat_template.json", json.dumps({"chat_template": "{{ from_processor }}"})),
    ],
)
def test_a_chat_template_in_a_file_of_its_own_comes_first(
    folder: Path, name: str, content: str
) -> None:
    assert from_folder(folder).chat_template == CHAT_TEMPLATE
    (folder / name).write_text(content)
    expected = content if name.endswith("jinja") else "{{ from_processor }}"
    assert from_folder(folder).chat_template == expected


def test_of_several_named_templates_the_default_is_taken(folder: Path) -> None:
    named = [
        {"name": "tool_use", "template": "{{ tools }}"},
        {"name": "default", "template": "{{ messages }}"},
    ]
    change_json(folder / "tokenizer_config.json", lambda value: value.update(chat_template=named))
    assert from_folder(folder).chat_template == "{{ messages }}"
    change_json(
        folder / "tokenizer_config.json", lambda value: value.update(chat_template=named[:1])
    )
    assert from_folder(folder).chat_template is None


def test_a_template_keeps_its_whitespace_in_the_bundle(folder: Path, tmp_path: Path) -> None:
    template = "{{ a }}\n  {{ b }}\n\n"
    (folder / "chat_template.jinja").write_bytes(template.encode())
    export(folder, tmp_path / "bundle")
    assert (tmp_path / "bundle" / "chat_template.jinja").read_bytes() == template.encode()


def test_byte_pieces_cover_what_the_vocabulary_lacks(tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, "gemma3")
    tokenizer = loaded(tokenizer_from_gguf(tmp_path, metadata, VOCABULARY))
    kinds = [kind for _, _, kind in gemma_pieces()]
    ids = tokenizer.encode("😀", add_special_tokens=False).ids
    assert [kinds[token_id] for token_id in ids] == [BYTE] * 4
    assert tokenizer.decode(ids) == "😀"


def test_the_tiny_folders_declare_what_real_ones_do(tmp_path: Path) -> None:
    for family, bos in (("llama", None), ("gemma3", 2)):
        folder = tmp_path / family
        folder.mkdir()
        write_tokenizer(folder, family)
        assert tokenizer_from_folder(folder, VOCABULARY, [2]).bos_token_id == bos
