"""Write what LeRobot's GR00T N1.7 policy computes, in the format that ``parity_dump.py`` describes.

Runs with the Python of an environment that has ``lerobot`` (and not this package), ``parity_dump.py`` beside it:

    python parity_dump_lerobot.py --checkpoint GR00T-N1.7-LIBERO/libero_10 --out artifacts --device cuda

The processors are those that LeRobot builds for a raw NVIDIA checkpoint, the network runs in float32 with SDPA
attention. LeRobot takes one state row and puts all groups into one vector, and so do its decoded actions: they are cut
into groups here where the widths say how. There is no training loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from parity_dump import (
    RTC_OPTIONS,
    Arrays,
    correctly_rounded_exp,
    input_arrays,
    no_reduced_precision,
    observations,
    parser,
    provenance,
    recorded_stages,
    source_of,
    write,
)

INPUTS = (
    "input_ids",
    "attention_mask",
    "mm_token_type_ids",
    "pixel_values",
    "image_grid_thw",
    "state",
    "embodiment_id",
)


def main(argv: list[str] | None = None) -> int:
    """Dump every tag that was asked for."""
    arguments = parser("LeRobot's").parse_args(argv)
    lerobot = LeRobot(arguments.checkpoint, arguments.backbone, arguments.device)
    for observation in observations(arguments, lerobot.modalities, lerobot.statistics):
        arrays = lerobot.dump(observation)
        write(arguments.out / f"lerobot_n1_7_{observation['embodiment_tag']}.npz", arrays)
    return 0


class LeRobot:
    """LeRobot's processors and network of one raw checkpoint."""

    def __init__(self, checkpoint: Path, backbone: Path | None, device: str) -> None:
        from lerobot.policies.groot import groot_n1_7

        no_reduced_precision()
        self.checkpoint, self.backbone, self.device = checkpoint, backbone, device
        with _backbone_from(backbone):
            self.model = groot_n1_7.GR00TN17.from_pretrained(str(checkpoint), tune_visual=False)
        self.model.compute_dtype = self.model.config.compute_dtype = "float32"
        self.model.to(device=device, dtype=torch.float32).eval()
        self.source = source_of(groot_n1_7.__file__, "lerobot")
        inner = checkpoint / "processor"
        folder = checkpoint if (checkpoint / "processor_config.json").is_file() else inner
        kwargs = json.loads((folder / "processor_config.json").read_text())["processor_kwargs"]
        self.modalities = {
            tag: {name: SimpleNamespace(**config) for name, config in modality.items() if isinstance(config, dict)}
            for tag, modality in kwargs["modality_configs"].items()
        }
        self.statistics = json.loads((folder / "statistics.json").read_text())

    def dump(self, observation: Arrays) -> Arrays:
        """Compute everything about one observation."""
        tag, seed = observation["embodiment_tag"], int(observation["seed"])
        modality = self.modalities[tag]
        raw = {
            f"raw::{kind}.{key}": observation[f"raw::{kind}.{key}"]
            for kind in ("video", "state")
            for key in modality[kind].modality_keys
        }
        preprocessor, postprocessor = self._processors(tag)
        batch: Arrays = {"task": [str(text) for text in observation["raw::language"]]}
        for key in modality["video"].modality_keys:
            frames = torch.from_numpy(raw[f"raw::video.{key}"]).permute(0, 1, 4, 2, 3)
            batch[f"observation.images.{key}"] = frames.contiguous()
        states = [raw[f"raw::state.{key}"][:, -1] for key in modality["state"].modality_keys]
        batch["observation.state"] = torch.from_numpy(np.concatenate(states, axis=-1))
        with _backbone_from(self.backbone):
            processed = preprocessor(batch)
        inputs = {key: processed[key] for key in INPUTS if key in processed}
        with recorded_stages(self.model) as stages:
            action_pred = self._sample(inputs, seed)
        horizon = len(modality["action"].delta_indices)
        recorded = {f"stage::{name}": tensor.float().cpu().numpy() for name, tensor in stages.items()}
        return {
            **raw,
            "raw::language": observation["raw::language"],
            "raw_video_keys": np.array(modality["video"].modality_keys),
            "raw_state_keys": np.array(modality["state"].modality_keys),
            **input_arrays(inputs),
            **recorded,
            "initial_noise": recorded["stage::denoising.0.actions"],
            "action_pred": action_pred,
            **self._decoded(tag, postprocessor, action_pred),
            **self._real_time_chunking(horizon, inputs, action_pred, seed),
            **provenance(tag, seed, self.device, f"lerobot {self.source}"),
        }

    def _processors(self, tag: str) -> tuple[Any, Any]:
        from lerobot.policies.groot import processor_groot
        from lerobot.policies.groot.configuration_groot import GrootConfig

        config = GrootConfig(
            base_model_path=str(self.checkpoint),
            embodiment_tag=tag,
            max_state_dim=self.model.config.max_state_dim,
            max_action_dim=self.model.config.max_action_dim,
            action_decode_transform="none",
            device=self.device,
        )
        name = str(self.backbone or processor_groot.GROOT_N1_7_BACKBONE_MODEL)
        with mock.patch.object(processor_groot, "GROOT_N1_7_BACKBONE_MODEL", name):
            processors: tuple[Any, Any] = processor_groot.make_groot_pre_post_processors(config)
        return processors

    def _sample(self, inputs: Arrays, seed: int, options: Arrays | None = None) -> np.ndarray:
        torch.manual_seed(seed)
        with torch.inference_mode(), correctly_rounded_exp():
            prediction = self.model.get_action(dict(inputs), options)
        return np.asarray(prediction["action_pred"].float().cpu().numpy())

    def _decoded(self, tag: str, postprocessor: Any, action_pred: np.ndarray) -> Arrays:
        """The physical actions by group; nothing where LeRobot cannot decode the tag."""
        try:
            together = np.asarray(postprocessor(torch.from_numpy(action_pred)).cpu().numpy())
        except (ValueError, KeyError, NotImplementedError) as error:
            print(f"{tag}: LeRobot cannot decode it: {error}")
            return {}
        statistics = self.statistics[tag]["action"]
        widths = {key: len(statistics[key]["min"]) for key in self.modalities[tag]["action"].modality_keys}
        if together.shape[-1] != sum(widths.values()):
            print(f"{tag}: LeRobot leaves its actions as they are: {together.shape[-1]} dimensions, not {widths}")
            return {}
        ends = np.cumsum(list(widths.values()))
        parts = np.split(together, ends[:-1], axis=-1)
        return {f"decoded::{key}": part for key, part in zip(widths, parts, strict=True)}

    def _real_time_chunking(self, horizon: int, inputs: Arrays, action_pred: np.ndarray, seed: int) -> Arrays:
        overlap = max(1, horizon // 2)
        options = dict(zip(RTC_OPTIONS, (horizon, overlap, overlap // 3, 6.0), strict=True))
        previous = torch.from_numpy(action_pred).to(self.device)
        return {
            "rtc::previous": action_pred,
            **{f"rtc::{key}": np.array(value) for key, value in options.items()},
            "rtc::action_pred": self._sample({**inputs, "action": previous}, seed, options),
        }


@contextmanager
def _backbone_from(folder: Path | None) -> Iterator[None]:
    """Read the backbone's configuration from a folder instead of the hub."""
    if folder is None:
        yield
        return
    from transformers import AutoConfig

    load = AutoConfig.from_pretrained
    with mock.patch.object(AutoConfig, "from_pretrained", lambda _name, **options: load(folder, **options)):
        yield


if __name__ == "__main__":
    raise SystemExit(main())
