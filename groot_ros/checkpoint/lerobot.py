"""Checkpoints that LeRobot trained: a ``type`` key in ``config.json``, and processors saved as pipelines of steps.

LeRobot keeps what NVIDIA writes into ``processor_config.json`` and ``statistics.json`` in the steps of
``policy_preprocessor.json`` and ``policy_postprocessor.json``; numbers of plain steps lie in safetensors files. The
network's dimensions are those of the base model. Here all of it becomes the same typed metadata.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from groot_ros.checkpoint.config import ModelConfig, parse_model_config
from groot_ros.checkpoint.fields import Fields, read_json
from groot_ros.checkpoint.hub import is_hub_id, obtain
from groot_ros.checkpoint.lerobot_pipeline import DECODE, ENCODE, PACK, UNPACK, read_state, read_steps
from groot_ros.checkpoint.processor_config import ProcessorConfig, parse_processor_config
from groot_ros.checkpoint.statistics import TagStatistics, parse_statistics
from groot_ros.checkpoint.versions import (
    N1_7_BASE_MODEL,
    CheckpointOrigin,
    n1_5_refusal,
    refuse_other_version_in_path,
)
from groot_ros.errors import CheckpointError

PREPROCESSOR = "policy_preprocessor.json"
POSTPROCESSOR = "policy_postprocessor.json"
BASE_MODEL = "base_model"

# The released networks' dimensions, where the base model's own file is not on this machine. They differ from the
# defaults of the original's code. The weights' shapes confirm all of them but the split into attention heads.
_RELEASED_NETWORK: dict[str, Any] = {
    "model_type": "Gr00tN1d7",
    "select_layer": 16,
    "state_dropout_prob": 0.2,
    "diffusion_model_cfg": {
        "num_layers": 32,
        "num_attention_heads": 32,
        "attention_head_dim": 48,
        "output_dim": 1024,
        "dropout": 0.2,
        "final_dropout": True,
        "norm_type": "ada_norm",
        "interleave_self_attention": True,
        "positional_embeddings": None,
    },
    "vl_self_attention_cfg": {
        "num_layers": 4,
        "num_attention_heads": 32,
        "attention_head_dim": 64,
        "dropout": 0.2,
        "final_dropout": True,
        "positional_embeddings": None,
    },
}


class Metadata(NamedTuple):
    """What a checkpoint says besides its weights, whoever wrote it."""

    config: ModelConfig
    processor: ProcessorConfig
    statistics: dict[str, TagStatistics]
    embodiment_ids: dict[str, int]


def is_lerobot(config: dict[str, Any]) -> bool:
    """Return whether a ``config.json`` was written by LeRobot."""
    return "type" in config


def read_lerobot(directory: Path, config: dict[str, Any], *, allow_download: bool) -> Metadata:
    """Read the metadata of a LeRobot-trained checkpoint.

    Args:
        directory: Its folder.
        config: Content of its ``config.json``.
        allow_download: Whether the hub may be asked for the base model's ``config.json``.

    Raises:
        CheckpointError: It is of another policy or GR00T version, or a step is unknown, missing or contradictory.

    """
    where = str(directory / "config.json")
    if config["type"] != "groot":
        msg = f"{where}: type is {config['type']!r}, but must be 'groot': this is another policy of LeRobot."
        raise CheckpointError(msg)
    if config.get("tokenizer_assets_repo"):
        raise n1_5_refusal(where, f"tokenizer_assets_repo is {config['tokenizer_assets_repo']!r}")
    base = config.get("base_model_path") or N1_7_BASE_MODEL
    refuse_other_version_in_path(base, where)
    steps = read_steps(directory / PREPROCESSOR)
    decoding = read_steps(directory / POSTPROCESSOR)
    for name in (PACK, ENCODE):
        if name not in steps:
            msg = f"{directory / PREPROCESSOR}: the step {name} is missing."
            raise CheckpointError(msg)
    if (DECODE in decoding) == (UNPACK in decoding):
        msg = f"{directory / POSTPROCESSOR}: exactly one of the steps {DECODE} and {UNPACK} must be there."
        raise CheckpointError(msg)
    reader = _Reader(directory, config, steps[PACK], steps[ENCODE])
    reader.pack.only("normalize_min_max", (True,), default=True)
    modalities, statistics = reader.grouped(decoding[DECODE]) if DECODE in decoding else reader.flat(decoding[UNPACK])
    tag = reader.tag
    return Metadata(
        config=_network(directory, config, base, allow_download=allow_download),
        processor=reader.processor(modalities),
        statistics=parse_statistics({tag: statistics}, f"{directory / PREPROCESSOR}: {PACK}"),
        embodiment_ids=reader.embodiment_ids(),
    )


class _Reader:
    """Reads the steps of one checkpoint, which serves one embodiment tag."""

    def __init__(self, directory: Path, config: dict[str, Any], pack: Fields, encode: Fields) -> None:
        self.directory = directory
        self.config = config
        self.pack = pack
        self.encode = encode
        self.tag = pack.text("embodiment_tag")

    def embodiment_ids(self) -> dict[str, int]:
        """Return the projector numbers; LeRobot trains a tag that its table does not name with number 0."""
        mapping = self.pack.inner("embodiment_mapping")
        return {self.tag: 0, **{tag: mapping.integer(tag) for tag in mapping.keys()}}  # noqa: SIM118

    def grouped(self, decode: Fields) -> tuple[dict[str, Any], dict[str, Any]]:
        """Read modalities and statistics by group: they lie in the steps' configuration."""
        for key in ("raw_stats", "modality_config", "use_percentiles"):
            if decode.value(key) != self.pack.value(key):
                msg = f"{decode.where}: {key} differs from that of the step {PACK}: the two must belong together."
                raise CheckpointError(msg)
        modality = self.pack.inner("modality_config")
        action = modality.inner("action")
        indices = action.value("delta_indices")
        if not isinstance(indices, list) or not indices:
            action.refuse("delta_indices", "a list of whole numbers")
        # Rows beyond the valid horizon were masked in training: the network has not learned them.
        rows = min(len(indices), self.pack.integer("valid_action_horizon", minimum=1))
        statistics = self.pack.inner("raw_stats").content
        statistics["relative_action"] = {
            key: {name: _first_rows(values, rows) for name, values in entry.items()}
            for key, entry in (statistics.get("relative_action") or {}).items()
        }
        modalities = self._modalities(
            {"delta_indices": [0], **modality.inner("state").content},
            {**action.content, "delta_indices": list(range(rows))},
            modality.value("video"),
        )
        return modalities, statistics

    def flat(self, unpack: Fields) -> tuple[dict[str, Any], dict[str, Any]]:
        """Read one group of state and one of action: the numbers lie in a safetensors file."""
        unpack.only("normalize_min_max", (True,), default=True)
        unpack.only("clip_normalized_action", (True,), default=False)
        tensors = read_state(self.directory, self.pack)
        if tensors != read_state(self.directory, unpack):
            msg = f"{unpack.where}: the statistics differ from those of the step {PACK}: the two must belong together."
            raise CheckpointError(msg)
        statistics = {
            modality: {modality: {name: tensors.get(f"{feature}.{name}") for name in _STATISTICS}}
            for modality, feature in (("state", "observation.state"), ("action", "action"))
        }
        width = unpack.integer("env_action_dim")
        if width and width != len(statistics["action"]["action"]["min"] or ()):
            unpack.refuse("env_action_dim", "the number of dimensions of the action's statistics")
        rows = list(range(self.pack.integer("valid_action_horizon", minimum=1)))
        state = {"delta_indices": [0], "modality_keys": ["state"]}
        return self._modalities(state, {"delta_indices": rows, "modality_keys": ["action"]}, None), statistics

    def processor(self, modalities: dict[str, Any]) -> ProcessorConfig:
        """Build the processor's configuration out of the packing and the encoding step."""
        keys = (
            "image_crop_size",
            "image_target_size",
            "shortest_image_edge",
            "crop_fraction",
            "use_albumentations",
            "letter_box_transform",
            "model_name",
        )
        kwargs = {key: self.encode.value(key) for key in keys if key in self.encode}
        # A network that LeRobot trained on relative groups has learned relative values, whatever the switch says.
        relative = any(entry["rep"].upper() == "RELATIVE" for entry in modalities["action"].get("action_configs") or ())
        kwargs.update(
            modality_configs={self.tag: modalities},
            use_relative_action=relative,
            max_action_horizon=self.pack.integer("action_horizon", minimum=1),
            **{
                key: self.pack.value(key)
                for key in (
                    "formalize_language",
                    "max_state_dim",
                    "max_action_dim",
                    "use_percentiles",
                    "clip_outliers",
                    "state_dropout_prob",
                )
                if key in self.pack
            },
        )
        return parse_processor_config(
            {"processor_kwargs": kwargs}, str(self.directory / PREPROCESSOR), origin=CheckpointOrigin.LEROBOT
        )

    def _modalities(self, state: object, action: object, video: object) -> dict[str, Any]:
        history = video.get("delta_indices", [0]) if isinstance(video, dict) else [0]
        if len(history) != 1:
            msg = (
                f"{self.pack.where}: the video has the history {history}, but LeRobot trains it with one frame "
                "repeated, so there is no right input: fine-tune with one frame, or with groot_ros."
            )
            raise CheckpointError(msg)
        return {
            "video": {"delta_indices": [0], "modality_keys": self._cameras()},
            "state": state,
            "action": action,
            "language": {"delta_indices": [0], "modality_keys": [self.pack.text("language_key", "task")]},
        }

    def _cameras(self) -> list[str]:
        """Return the cameras in the order in which LeRobot hands them to the network."""
        features = self.config.get("input_features") or {}
        available = sorted(
            name.removeprefix("observation.images.").removeprefix("observation.")
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("type") == "VISUAL"
        )
        wanted = self.pack.value("video_modality_keys") or []
        aliases = {"wrist_image": "image2"}
        ordered = [key for key in wanted if key in available or aliases.get(key) in available]
        return ordered or available or list(wanted)


_STATISTICS = ("min", "max", "mean", "std", "q01", "q99")


def _first_rows(values: object, rows: int) -> object:
    """Cut statistics per time step to the rows that were trained."""
    per_step = isinstance(values, list) and bool(values) and isinstance(values[0], list)
    return values[:rows] if isinstance(values, list) and per_step else values


def _network(directory: Path, config: dict[str, Any], base: str, *, allow_download: bool) -> ModelConfig:
    """Read the network's dimensions from the base model; LeRobot itself does not write them."""
    places = (directory / BASE_MODEL, Path(base).expanduser())
    local = next((path for path in places if (path / "config.json").is_file()), None)
    if local is not None:
        network = read_json(local / "config.json")
    elif is_hub_id(base):
        try:
            found = obtain(base, ("config.json",), allow_download=allow_download, purpose="the base model")
            network = read_json(found / "config.json")
        except CheckpointError:
            if not base.startswith("nvidia/GR00T-N1.7"):
                raise
            network = dict(_RELEASED_NETWORK)
    else:
        msg = (
            f"{directory / 'config.json'}: base_model_path is {base!r}, which is not on this machine: "
            "its config.json holds the network's dimensions; copy it there, or set base_model_path to its folder."
        )
        raise CheckpointError(msg)
    if config.get("num_inference_timesteps") is not None:
        network = {**network, "num_inference_timesteps": config["num_inference_timesteps"]}
    return parse_model_config(network, f"config.json of the base model {base}")
