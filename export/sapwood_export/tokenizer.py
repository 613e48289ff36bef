"""What a bundle needs to turn text into ids and back, from a Hugging Face folder.

The contract with the runtime: text is encoded *without* special tokens, and ``bos_token_id``, where
it is not None, is put in front exactly once. It is what the family's own tokenizer would put there,
not merely what the files call ``bos_token``: SmolLM2 and Qwen name one and never prepend it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapwood.errors import SapwoodError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Special tokens that end a turn in chat models. Files often declare only the end of the document,
# yet generation has to stop here too.
TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>")

SPECIAL_TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token")


@dataclass(frozen=True)
class TokenizerFiles:
    """A tokenizer as a bundle stores it."""

    json_bytes: bytes = field(repr=False)  # tokenizer.json
    chat_template: str | None = field(repr=False)  # Jinja, as Hugging Face renders it
    bos_token_id: int | None  # put before every prompt; None: the family adds none
    eos_token_ids: tuple[int, ...]  # ascending, at least one
    special_tokens: dict[str, str]  # bos_token, eos_token, ...: what chat templates may refer to


def tokenizer_from_folder(
    folder: Path, vocabulary_size: int, eos_declarations: Iterable[Any]
) -> TokenizerFiles:
    """Reads tokenizer.json and what accompanies it.

    ``eos_declarations`` are the values of ``eos_token_id`` in the model's other files: an id, a
    list of ids, or None.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise SapwoodError(
            f"{folder}: the tokenizer is missing: no tokenizer.json; save one there with "
            "transformers' AutoTokenizer and save_pretrained"
        )
    config = read_json(folder / "tokenizer_config.json", optional=True)
    special_map = read_json(folder / "special_tokens_map.json", optional=True)
    tokenizer = _load(path)
    tokenizer.no_truncation()  # settings of a training run, which transformers ignores as well
    tokenizer.no_padding()
    special_tokens = _special_tokens({**special_map, **config})
    _add_declared_tokens(path, tokenizer, config, special_tokens)
    tokenizer = _without_unembedded_tokens(tokenizer, vocabulary_size)
    check_ids(str(path), tokenizer, vocabulary_size)
    eos = list(_ids(str(folder), eos_declarations))
    if "eos_token" in special_tokens:
        eos_id = tokenizer.token_to_id(special_tokens["eos_token"])
        if eos_id is None:
            raise SapwoodError(
                f"{folder}: the end-of-text token '{special_tokens['eos_token']}' of "
                "tokenizer_config.json is not in tokenizer.json"
            )
        eos.append(eos_id)
    return TokenizerFiles(
        json_bytes=tokenizer.to_str().encode("utf-8"),
        chat_template=_chat_template(folder, config),
        bos_token_id=_prepended_bos(folder, tokenizer, config, special_tokens),
        eos_token_ids=eos_union(str(folder), tokenizer, eos, vocabulary_size),
        special_tokens=special_tokens,
    )


def read_json(path: Path, *, optional: bool = False) -> dict[str, Any]:
    """A JSON object from a file; an empty one if it may be absent and is."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if optional:
            return {}
        raise SapwoodError(f"{path}: the file is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SapwoodError(f"{path}: cannot be read: {error}") from None
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise SapwoodError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise SapwoodError(f"{path}: a JSON object was expected")
    return value


def check_ids(where: str, tokenizer: Tokenizer, vocabulary_size: int) -> None:
    """Refuses a tokenizer that can produce an id for which the model has no embedding."""
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if largest < 0:
        raise SapwoodError(f"{where}: the tokenizer has no tokens")
    if largest >= vocabulary_size:
        raise SapwoodError(
            f"{where}: the tokenizer's ids reach {largest}, the model's vocabulary has "
            f"{vocabulary_size}: they do not belong together"
        )


def eos_union(
    where: str, tokenizer: Tokenizer, declared: Iterable[int], vocabulary_size: int
) -> tuple[int, ...]:
    """All ids that end a generation: those declared, and the special tokens that end a turn."""
    union = set(declared)
    for token in tokenizer.get_added_tokens_decoder().items():
        if token[1].special and token[1].content in TURN_ENDS:
            union.add(token[0])
    for token_id in union:
        if not 0 <= token_id < vocabulary_size:
            raise SapwoodError(
                f"{where}: the end-of-text id {token_id} is outside the vocabulary of "
                f"{vocabulary_size}"
            )
    if not union:
        raise SapwoodError(f"{where}: no file declares an end-of-text token")
    return tuple(sorted(union))


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(path.read_bytes())
    except OSError as error:
        raise SapwoodError(f"{path}: cannot be read: {error.strerror}") from None
    except Exception as error:  # the library raises bare Exceptions
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SapwoodError(f"{path}: not a valid tokenizer.json: {reason}") from None


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name in SPECIAL_TOKEN_NAMES:
        content = _content(config.get(name))
        if content is not None:
            found[name] = content
    return found


def _content(entry: Any) -> str | None:
    """A token is written as its text or as an object that holds it."""
    if isinstance(entry, Mapping):
        entry = entry.get("content")
    return entry if isinstance(entry, str) and entry else None


def _add_declared_tokens(
    path: Path,
    tokenizer: Tokenizer,
    config: Mapping[str, Any],
    special_tokens: Mapping[str, str],
) -> None:
    """Adds the tokens that only tokenizer_config.json declares, as transformers does."""
    from tokenizers import AddedToken

    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    decoder = config.get("added_tokens_decoder")
    entries = decoder.items() if isinstance(decoder, Mapping) else ()
    for key, entry in sorted(entries, key=lambda item: int(item[0])):
        content = _content(entry)
        if content is None or content in known:
            continue
        flags = {
            flag: bool(entry.get(flag, False))
            for flag in ("single_word", "lstrip", "rstrip", "normalized", "special")
        }
        tokenizer.add_tokens([AddedToken(content, **flags)])
        known.add(content)
        if tokenizer.token_to_id(content) != int(key):
            raise SapwoodError(
                f"{path}: tokenizer_config.json gives '{content}' the id {key}, "
                f"tokenizer.json has {tokenizer.token_to_id(content)}"
            )
    for content in special_tokens.values():
        if content not in known and tokenizer.token_to_id(content) is not None:
            tokenizer.add_special_tokens([AddedToken(content, normalized=False, special=True)])
            known.add(content)


def _without_unembedded_tokens(tokenizer: Tokenizer, vocabulary_size: int) -> Tokenizer:
    """Leaves out special tokens past the embedding's end: in a text model, those of other inputs.

    Gemma 3's small models share their tokenizer with those that see, and so name one token more
    than they embed.
    """
    from tokenizers import Tokenizer

    added = tokenizer.get_added_tokens_decoder()
    outside = {number for number, token in added.items() if number >= vocabulary_size}
    if not outside or not all(added[number].special for number in outside):
        return tokenizer
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = [
        token for token in description["added_tokens"] if token["id"] not in outside
    ]
    return Tokenizer.from_str(json.dumps(description))


def _prepended_bos(
    folder: Path,
    tokenizer: Tokenizer,
    config: Mapping[str, Any],
    special_tokens: Mapping[str, str],
) -> int | None:
    """What encoding with special tokens puts first, unless the configuration overrules it."""
    declared = special_tokens.get("bos_token")
    declared_id = None if declared is None else tokenizer.token_to_id(declared)
    wanted = config.get("add_bos_token")
    if wanted is False:
        return None
    if wanted is True:
        if declared_id is None:
            raise SapwoodError(
                f"{folder}: tokenizer_config.json asks for a beginning-of-text token and names none"
            )
        return int(declared_id)
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    full = tokenizer.encode("a", add_special_tokens=True).ids
    if full == bare or full[: len(bare)] == bare:
        return None
    return int(full[0])


def _chat_template(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The file of its own first, then the processor's, then the tokenizer's configuration."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SapwoodError(f"{path}: cannot be read: {error}") from None
    template = read_json(folder / "chat_template.json", optional=True).get("chat_template")
    if template is None:
        template = config.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template}
        template = named.get("default")
    return template if isinstance(template, str) and template else None


def _ids(where: str, declarations: Iterable[Any]) -> Iterable[int]:
    for declaration in declarations:
        if declaration is None:
            continue
        for value in declaration if isinstance(declaration, list) else [declaration]:
            if not isinstance(value, int) or isinstance(value, bool):
                raise SapwoodError(f"{where}: the end-of-text id {value!r} is not a number")
            yield value
