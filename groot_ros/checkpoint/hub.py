"""The Hugging Face hub: the only door to the network, and closed unless the caller opens it."""

from __future__ import annotations

import re
from pathlib import Path

from groot_ros.errors import CheckpointError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(/[\w.-]+)*")

CHECKPOINT_FILES = (
    "config.json",
    "model*.safetensors",
    "model.safetensors.index.json",
    "processor_config.json",
    "statistics.json",
    "embodiment_id.json",
    "processor/*.json",
    "backbone/*",
    "base_model/config.json",
    "groot_ros.json",
    "policy_preprocessor*",
    "policy_postprocessor*",
    "train_config.json",
)
BACKBONE_FILES = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.json",
    "chat_template.jinja",
)


def is_hub_id(name: str) -> bool:
    """Return whether ``name`` can be a repository ``owner/name``, or a folder in one: ``owner/name/folder``."""
    return _HUB_ID.fullmatch(name) is not None and ".." not in name


def obtain(hub_id: str, files: tuple[str, ...], *, allow_download: bool, purpose: str) -> Path:
    """Return a local folder with files of a hub repository: from this machine's cache, or downloaded if allowed.

    Args:
        hub_id: ``owner/name``, or ``owner/name/folder`` for a folder in the repository.
        files: Patterns of the files to bring, relative to the folder.
        allow_download: Whether the network may be used; otherwise only the cache is.
        purpose: What the files are, for the messages.

    Raises:
        CheckpointError: The files are not in the cache and must not or cannot be downloaded.

    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    owner, name, *inner = hub_id.split("/")
    repository, folder = f"{owner}/{name}", "/".join(inner)
    patterns = [f"{folder}/{pattern}" if folder else pattern for pattern in files]
    try:
        snapshot = snapshot_download(repository, allow_patterns=patterns, local_files_only=not allow_download)
    except GatedRepoError as error:
        msg = (
            f"{repository} ({purpose}) is gated: open https://huggingface.co/{repository}, sign in, accept its terms, "
            "then run `hf auth login` on this machine with a token of that account."
        )
        raise CheckpointError(msg) from error
    except LocalEntryNotFoundError as error:
        raise CheckpointError(_not_here(repository, purpose, allow_download=allow_download)) from error
    except RepositoryNotFoundError as error:
        msg = (
            f"{repository} ({purpose}) is not on the hub, or not visible to you: check the name; "
            "for a private repository run `hf auth login`."
        )
        raise CheckpointError(msg) from error
    except (HfHubHTTPError, OSError) as error:
        msg = f"{repository} ({purpose}) could not be downloaded ({error}): check the network and try again."
        raise CheckpointError(msg) from error
    directory = Path(snapshot) / folder
    if not directory.is_dir():
        raise CheckpointError(_not_here(hub_id, purpose, allow_download=allow_download))
    return directory


def _not_here(name: str, purpose: str, *, allow_download: bool) -> str:
    if allow_download:
        return f"{name} ({purpose}) is not on this machine and the hub cannot be reached: check name and network."
    return (
        f"{name} ({purpose}) is not on this machine and downloads are off: "
        "give a local folder, allow the download (--allow-download, or the parameter allow_download), "
        "or put the files into the checkpoint with "
        "`python -m groot_ros checkpoint bundle` on a machine that has them."
    )
