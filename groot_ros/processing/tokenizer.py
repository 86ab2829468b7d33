"""The backbone's tokenizer, read from the files of its folder: no network, no code but the tokenizers library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from groot_ros.checkpoint.fields import read_json
from groot_ros.errors import CheckpointError

# How Qwen2 and Qwen3 split text before byte-pair merging; folders without tokenizer.json leave it to the reader.
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def load_tokenizer(directory: Path) -> Tokenizer:
    """Read ``tokenizer.json``, or build the same from ``vocab.json`` and ``merges.txt``.

    Control tokens that only ``tokenizer_config.json`` or ``added_tokens.json`` name are added.

    Raises:
        CheckpointError: The files are missing, damaged or contradict each other.

    """
    whole = directory / "tokenizer.json"
    vocabulary, merges = directory / "vocab.json", directory / "merges.txt"
    if whole.is_file():
        try:
            tokenizer = Tokenizer.from_file(str(whole))
        except Exception as error:  # the library raises a bare Exception
            msg = (
                f"{whole}: cannot be read as a tokenizer ({error}); copy the file from the backbone's repository again"
            )
            raise CheckpointError(msg) from error
    elif vocabulary.is_file() and merges.is_file():
        tokenizer = _from_vocabulary(vocabulary, merges)
    else:
        msg = (
            f"{directory}: holds no tokenizer; tokenizer.json, or vocab.json with merges.txt, of the backbone is "
            "needed there"
        )
        raise CheckpointError(msg)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    _add_missing_tokens(tokenizer, directory)
    return tokenizer


def special_token(directory: Path, name: str) -> str:
    """The token that ``tokenizer_config.json`` or ``special_tokens_map.json`` calls ``name``, such as pad_token.

    Raises:
        CheckpointError: No file names it.

    """
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        found = read_if_there(directory / file).get(name)
        if isinstance(found, dict):
            found = found.get("content")
        if isinstance(found, str):
            return found
    msg = f"{directory}: neither tokenizer_config.json nor special_tokens_map.json names a {name}"
    raise CheckpointError(msg)


def token_id(tokenizer: Tokenizer, token: str, directory: Path) -> int:
    """The id of a token that must be there."""
    found: int | None = tokenizer.token_to_id(token)
    if found is None:
        msg = f"{directory}: the tokenizer does not know {token}; it is not that of a Qwen3-VL backbone"
        raise CheckpointError(msg)
    return found


def read_if_there(path: Path) -> dict[str, Any]:
    """A JSON object of the tokenizer's folder; an absent file is an empty one."""
    return read_json(path) if path.is_file() else {}


def _from_vocabulary(vocabulary: Path, merges: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # the library raises a bare Exception
        msg = f"{vocabulary} and {merges.name}: cannot be read as a byte-pair vocabulary ({error})"
        raise CheckpointError(msg) from error
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _add_missing_tokens(tokenizer: Tokenizer, directory: Path) -> None:
    config = read_if_there(directory / "tokenizer_config.json")
    wanted = {int(identity): AddedToken(**token) for identity, token in config.get("added_tokens_decoder", {}).items()}
    listed = {token.content for token in wanted.values()}
    for content, identity in read_if_there(directory / "added_tokens.json").items():
        if content not in listed:
            wanted[identity] = AddedToken(content, special=True, normalized=False)
    known = tokenizer.get_added_tokens_decoder()
    for identity, token in sorted(wanted.items()):
        if identity not in known:
            (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
        found = tokenizer.token_to_id(token.content)
        if found != identity:
            msg = (
                f"{directory}: {token.content} has id {found} in the vocabulary and {identity} in "
                "tokenizer_config.json or added_tokens.json; the files belong to different tokenizers"
            )
            raise CheckpointError(msg)
