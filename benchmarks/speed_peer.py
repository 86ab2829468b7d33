"""LeRobot's side of the speed comparison; started by ``speed.py`` with the Python of an environment that has lerobot.

It is measured as its users meet it: its processors are called with tensors, its network through ``get_action`` in
inference mode. Its two hub names are pointed at the backbone's folder, so that nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any
from unittest import mock

import numpy as np
import torch
from speed_worker import INSTRUCTION, camera_frames, robot_state, serve, timed

FPS, HORIZON = 30, 8
PREPROCESSED = ("observation.", "action", "task")
NETWORK_INPUTS = (
    "input_ids",
    "attention_mask",
    "mm_token_type_ids",
    "pixel_values",
    "image_grid_thw",
    "state",
    "embodiment_id",
)


class Peer:
    """LeRobot's processors, and its network once it is loaded."""

    def open(self, checkpoint: str, tag: str, threads: int, backbone: str, cameras: list[str]) -> dict[str, Any]:
        """Make its processors."""
        from lerobot.policies.groot import processor_groot
        from lerobot.policies.groot.configuration_groot import GrootConfig
        from transformers import AutoConfig

        torch.set_num_threads(threads)
        self.checkpoint, self.cameras = checkpoint, cameras
        load = AutoConfig.from_pretrained
        AutoConfig.from_pretrained = lambda _name, **options: load(backbone, **options)
        processor_groot.GROOT_N1_7_BACKBONE_MODEL = backbone
        config = GrootConfig(
            base_model_path=checkpoint,
            embodiment_tag=tag,
            max_state_dim=132,
            max_action_dim=132,
            action_decode_transform="none",
            device="cpu",
        )
        self.preprocessor, _ = processor_groot.make_groot_pre_post_processors(config)
        return {}

    def preprocess(self, batch: int, runs: int, out: str | None = None) -> dict[str, Any]:
        """Observations to the network's inputs."""
        observations = self._batch(batch)
        seconds, inputs = timed(lambda: self.preprocessor(dict(observations)), runs)
        if out:
            found = {key: inputs[key] for key in NETWORK_INPUTS if key in inputs}
            np.savez(out, **{name: np.asarray(tensor) for name, tensor in found.items()})
        return {"seconds": seconds}

    def road(self, dataset: str, batch: int, batches: int, workers: int) -> dict[str, Any]:
        """Its own way from a dataset to batches: its loader decodes in workers, its preprocessor runs here."""
        from lerobot.datasets.lerobot_dataset import LeRobotDataset
        from torch.utils.data import DataLoader

        times_s = [row / FPS for row in range(HORIZON)]
        rows = LeRobotDataset("local/dataset", root=dataset, video_backend="pyav", delta_timestamps={"action": times_s})
        loader = DataLoader(rows, batch_size=batch, shuffle=True, drop_last=True, num_workers=workers)
        marks = []
        for number, read in enumerate(loader):
            self.preprocessor({key: value for key, value in read.items() if key.startswith(PREPROCESSED)})
            marks.append(time.perf_counter())
            if number + 1 == batches:
                break
        return {"seconds": np.diff(marks).tolist()}

    def load(self, dtype: str) -> dict[str, Any]:
        """Load its network: ``default`` is float32 weights under bfloat16 autocast."""
        from lerobot.policies.groot import groot_n1_7

        start = time.perf_counter()
        self.autocast = dtype == "default"
        kind = torch.float32 if self.autocast else getattr(torch, dtype)
        self.network = groot_n1_7.GR00TN17.from_pretrained(self.checkpoint, tune_visual=False, dtype=kind)
        name = "bfloat16" if self.autocast else dtype
        self.network.compute_dtype = self.network.config.compute_dtype = name
        self.network.to(dtype=kind).eval().requires_grad_(requires_grad=False)
        return {"seconds": [time.perf_counter() - start]}

    def predict(self, runs: int, noise: str, out: str | None = None, batch: int = 1) -> dict[str, Any]:
        """Observations to normalised actions."""
        observations, start = self._batch(batch), torch.from_numpy(np.load(noise))[:batch]

        def given_noise(*_size: object, dtype: torch.dtype | None = None, **_more: object) -> torch.Tensor:
            return start.to(dtype or torch.float32).clone()

        def run() -> torch.Tensor:
            inputs = self.preprocessor(dict(observations))
            wanted = {key: inputs[key] for key in NETWORK_INPUTS if key in inputs}
            # Noise differs between number types: both sides start from the same.
            with mock.patch.object(torch, "randn", given_noise), self._autocast():
                prediction: torch.Tensor = self.network.get_action(wanted)["action_pred"]
            return prediction

        with torch.inference_mode():
            seconds, actions = timed(run, runs)
        if out:
            np.save(out, actions.float().numpy())
        return {"seconds": seconds}

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast("cpu", torch.bfloat16) if self.autocast else contextlib.nullcontext()

    def _batch(self, batch: int) -> dict[str, Any]:
        frames = [camera_frames(self.cameras, sample) for sample in range(batch)]
        states = [np.concatenate(list(robot_state(sample).values()), axis=-1)[0] for sample in range(batch)]
        return {
            "task": [INSTRUCTION] * batch,
            "observation.state": torch.from_numpy(np.stack(states)),
            **{
                f"observation.images.{camera}": torch.from_numpy(
                    np.stack([sample[camera] for sample in frames]).transpose(0, 1, 4, 2, 3)
                )
                for camera in self.cameras
            },
        }


if __name__ == "__main__":
    peer = Peer()
    serve(
        {
            "open": peer.open,
            "preprocess": peer.preprocess,
            "road": peer.road,
            "load": peer.load,
            "predict": peer.predict,
        }
    )
