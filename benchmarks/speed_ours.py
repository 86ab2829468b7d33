"""Our side of the speed comparison; started by ``speed.py``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from speed_worker import INSTRUCTION, camera_frames, robot_state, serve, timed

from groot_ros.checkpoint import open_checkpoint
from groot_ros.model.fast import FastNetwork, load_fast
from groot_ros.model.loading import load_model
from groot_ros.nodes.memory import keep_freed_memory
from groot_ros.observation import Observation
from groot_ros.processing.processor import Processor


class Ours:
    """A processor, and a network once it is loaded."""

    def open(self, checkpoint: str, tag: str, threads: int) -> dict[str, Any]:
        """Open a checkpoint without its weights."""
        torch.set_num_threads(threads)
        keep_freed_memory()  # as the policy node does
        self.checkpoint = open_checkpoint(Path(checkpoint))
        self.processor = Processor(self.checkpoint, tag)
        return {}

    def preprocess(self, batch: int, runs: int, out: str | None = None) -> dict[str, Any]:
        """Observations to the network's inputs."""
        observations = self._observations(batch)
        seconds, inputs = timed(lambda: self.processor.prepare(observations), runs)
        if out:
            np.savez(out, **{name: tensor.numpy() for name, tensor in vars(inputs).items()})
        return {"seconds": seconds}

    def load(self, dtype: str, plain: bool = False) -> dict[str, Any]:
        """Load the network, plain or prepared."""
        start = time.perf_counter()
        checkpoint, kind = self.checkpoint, getattr(torch, dtype)
        weights, identity = checkpoint.weights(), self.processor.embodiment.id
        self.network: Any = None
        if plain:
            self.network = load_model(
                checkpoint.config,
                checkpoint.backbone.config,
                weights.tensors(),
                device="cpu",
                dtype=kind,
                given_away=True,
            )
        else:
            self.network = load_fast(
                checkpoint.config,
                checkpoint.backbone.config,
                lambda rows: weights.tensors(rows=rows),
                identity,
                device="cpu",
                dtype=kind,
            )
        return {"seconds": [time.perf_counter() - start]}

    def predict(self, runs: int, noise: str, out: str | None = None, batch: int = 1) -> dict[str, Any]:
        """Observations to normalised actions, with the time of each stage."""
        observations, start = self._observations(batch), torch.from_numpy(np.load(noise))[:batch]
        stages: dict[str, list[float]] = {"data_processing": [], "backbone": [], "action_head": []}
        network, seconds, actions = self.network, [], None
        with torch.inference_mode():
            for _ in range(runs):
                moments = [time.perf_counter()]
                inputs = self.processor.prepare(observations)
                moments.append(time.perf_counter())
                features = network.encode(
                    input_ids=inputs.input_ids,
                    attention_mask=inputs.attention_mask,
                    pixel_values=inputs.pixel_values.to(network.dtype),
                    image_grid_thw=inputs.image_grid_thw,
                )
                moments.append(time.perf_counter())
                own = {} if isinstance(network, FastNetwork) else {"embodiment_id": inputs.embodiment_id}
                actions = network.sample(features, state=inputs.state, noise=start, **own).float()
                moments.append(time.perf_counter())
                for name, begin, end in zip(stages, moments, moments[1:], strict=False):
                    stages[name].append(end - begin)
                seconds.append(moments[-1] - moments[0])
        if out and actions is not None:
            np.save(out, actions.numpy())
        return {"seconds": seconds, "stages": stages}

    def _observations(self, batch: int) -> list[Observation]:
        cameras = list(self.processor.cameras.keys)
        return [
            Observation(camera_frames(cameras, sample), robot_state(sample), INSTRUCTION, stamp_ns=0)
            for sample in range(batch)
        ]


if __name__ == "__main__":
    ours = Ours()
    serve({"open": ours.open, "preprocess": ours.preprocess, "load": ours.load, "predict": ours.predict})
