"""A checkpoint as one value: opened from a folder or a hub id, checked, without reading a single weight."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groot_ros.checkpoint.backbone import Backbone, check_backbone, find_backbone
from groot_ros.checkpoint.config import ModelConfig, parse_model_config
from groot_ros.checkpoint.embodiments import EMBODIMENT_IDS, Embodiment, check_embodiment, parse_embodiment_ids
from groot_ros.checkpoint.fields import Fields, read_json
from groot_ros.checkpoint.hub import CHECKPOINT_FILES, is_hub_id, obtain
from groot_ros.checkpoint.lerobot import Metadata, is_lerobot, read_lerobot
from groot_ros.checkpoint.processor_config import ProcessorConfig, parse_processor_config
from groot_ros.checkpoint.statistics import TagStatistics, parse_statistics
from groot_ros.checkpoint.versions import CheckpointOrigin, refuse_other_version_in_path
from groot_ros.checkpoint.weights import WeightFiles
from groot_ros.errors import CheckpointError

OWN_FILE = "groot_ros.json"


@dataclass(frozen=True)
class Checkpoint:
    """A GR00T N1.7 checkpoint.

    Attributes:
        path: Its folder.
        origin: Who wrote it.
        config: The network.
        processor: How observations become model inputs.
        statistics: Embodiment tag to the numbers of normalisation.
        embodiment_ids: Embodiment tag to the number of its projector.
        fps: Rows of action a second in the training data, or None where the file does not say.
        backbone: Side files of the vision-language backbone.

    """

    path: Path
    origin: CheckpointOrigin
    config: ModelConfig
    processor: ProcessorConfig
    statistics: dict[str, TagStatistics]
    embodiment_ids: dict[str, int]
    fps: float | None
    backbone: Backbone

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags with modalities and statistics, in the order of the file."""
        return tuple(tag for tag in self.processor.modality_configs if tag in self.statistics)

    @property
    def untrained_tags(self) -> tuple[str, ...]:
        """Tags that N1.7 knows by name, but that this checkpoint cannot drive without fine-tuning."""
        return tuple(tag for tag in {**self.processor.modality_configs, **EMBODIMENT_IDS} if tag not in self.tags)

    def embodiment(self, tag: str) -> Embodiment:
        """Return everything about one tag.

        Raises:
            CheckpointError: The checkpoint does not have the tag, or its parts do not fit each other.

        """
        if tag not in self.tags:
            known = tag in self.untrained_tags
            reason = "needs fine-tuning: GR00T N1.7 knows it by name only" if known else "is unknown"
            tags = ", ".join(self.tags) or "none"
            msg = f"{self.path}: the embodiment tag {tag} {reason}. Tags of this checkpoint: {tags}."
            raise CheckpointError(msg)
        if tag not in self.embodiment_ids:
            msg = f"{self.path}: embodiment_id.json has no number for {tag}, and the tag has none of its own."
            raise CheckpointError(msg)
        embodiment = Embodiment(
            tag, self.embodiment_ids[tag], self.processor.modality_configs[tag], self.statistics[tag]
        )
        check_embodiment(embodiment, self.config, self.processor, str(self.path))
        return embodiment

    def weights(self) -> WeightFiles:
        """Open the weight files: reads their headers.

        Raises:
            CheckpointError: A file is missing or damaged.

        """
        return WeightFiles(self.path)


def open_checkpoint(
    path_or_hub_id: str | Path, *, backbone: Path | None = None, allow_download: bool = False
) -> Checkpoint:
    """Open a checkpoint: reads and checks everything but the weights.

    Args:
        path_or_hub_id: A folder, or a hub id ``owner/name`` (or ``owner/name/folder``).
        backbone: Folder with the backbone's side files; by default they are looked up, see ``find_backbone``.
        allow_download: Whether the hub may be asked. Files that its cache on this machine holds are used in any case.

    Raises:
        CheckpointError: Something is missing, damaged, contradictory, of another GR00T version, or unknown.

    """
    directory = _locate(path_or_hub_id, allow_download=allow_download)
    config_file = directory / "config.json"
    if not config_file.is_file():
        raise _no_config(directory)
    raw_config = read_json(config_file)
    if is_lerobot(raw_config):
        origin = CheckpointOrigin.LEROBOT
        config, processor, statistics, ids = read_lerobot(directory, raw_config, allow_download=allow_download)
        model_name = processor.model_name
    else:
        origin = CheckpointOrigin.NVIDIA
        config, processor, statistics, ids = _read_nvidia(directory, raw_config)
        model_name = config.model_name
    found = find_backbone(directory, model_name, given=backbone, allow_download=allow_download)
    check_backbone(found, config)
    return Checkpoint(
        path=directory,
        origin=origin,
        config=config,
        processor=processor,
        statistics=statistics,
        embodiment_ids=ids,
        fps=_fps(directory),
        backbone=found,
    )


def _read_nvidia(directory: Path, config: dict[str, Any]) -> Metadata:
    """Read the metadata files of a checkpoint that NVIDIA's code, or ours, wrote."""
    processing = _processor_directory(directory)
    processor_file = processing / "processor_config.json"
    statistics_file = processing / "statistics.json"
    ids_file = processing / "embodiment_id.json"
    return Metadata(
        config=parse_model_config(config, str(directory / "config.json")),
        processor=parse_processor_config(read_json(processor_file), str(processor_file)),
        statistics=parse_statistics(read_json(statistics_file), str(statistics_file)),
        embodiment_ids=parse_embodiment_ids(read_json(ids_file) if ids_file.is_file() else None, str(ids_file)),
    )


def _no_config(directory: Path) -> CheckpointError:
    """Make the error for a folder that is no checkpoint, and point to those inside it."""
    inner = sorted(str(path.parent.relative_to(directory)) for path in directory.glob("*/config.json"))
    inner += sorted(str(path.parent.relative_to(directory)) for path in directory.glob("*/*/config.json"))
    hint = f"give one of the folders inside it: {', '.join(inner)}" if inner else "give a GR00T N1.7 checkpoint folder"
    return CheckpointError(f"{directory} has no config.json: {hint}.")


def _locate(path_or_hub_id: str | Path, *, allow_download: bool) -> Path:
    """Turn what the user gave into a local folder."""
    path = Path(path_or_hub_id).expanduser()
    if path.is_dir():
        return path
    name = str(path_or_hub_id)
    if path.exists() or isinstance(path_or_hub_id, Path) or not is_hub_id(name):
        msg = f"{path_or_hub_id} is not a checkpoint folder, and not a hub id of the form owner/name."
        raise CheckpointError(msg)
    refuse_other_version_in_path(name, name)
    return obtain(name, CHECKPOINT_FILES, allow_download=allow_download, purpose="the checkpoint")


def _processor_directory(directory: Path) -> Path:
    """Return where the processor's files lie: at the root, or in ``processor/`` as a training's output has them."""
    if not (directory / "processor_config.json").is_file() and (directory / "processor").is_dir():
        return directory / "processor"
    return directory


def _fps(directory: Path) -> float | None:
    """Read the rate of the training data from our own file, where a fine-tuning of ours has written it."""
    path = directory / OWN_FILE
    if not path.is_file():
        return None
    fields = Fields(read_json(path), str(path))
    return None if fields.value("fps") is None else fields.number("fps", minimum=0.001)
