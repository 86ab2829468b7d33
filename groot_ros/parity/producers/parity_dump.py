"""Write what NVIDIA's original GR00T N1.7 computes, so that another implementation can be compared with it.

This file runs by itself, with the Python of an environment that has NVIDIA's ``gr00t`` (and not this package):

    python parity_dump.py --checkpoint GR00T-N1.7-LIBERO/libero_10 --out artifacts --device cuda

It writes ``original_n1_7_<tag>.npz`` for every embodiment tag: raw observations, the original's model inputs, its
normalised and its decoded actions, a case of real-time chunking, a training loss, and the values between the stages of
the network. The network runs in float32 with SDPA attention: flash attention and bfloat16 would add rounding of their
own. Cameras, language and state come from the checkpoint's own files.

Keys, with B samples, T frames or state rows, H action rows and D action dimensions:

- ``raw::video.<key>`` uint8 (B, T, H, W, 3) RGB; ``raw::state.<key>`` float32 (B, T, d); ``raw::language`` (B,);
  ``raw::action.<key>`` float32 (B, T, d), the training targets; ``raw_video_keys``, ``raw_state_keys``
- ``in::inputs.<name>``: the collated inputs, with ``meta_keys`` and ``meta_dtypes``
- ``seed``, set right before sampling; ``initial_noise`` that came of it; ``action_pred`` (B, H, D), normalised
- ``decoded::<key>`` (B, T, d): physical actions
- ``rtc::previous``, ``rtc::<option>``, ``rtc::action_pred``: the same noise with real-time chunking
- ``train::action``, ``train::action_mask``, ``train::noise``, ``train::t``, ``train::loss``, ``train::action_loss``:
  the loss in evaluation mode, without dropout
- ``stage::<name>``: what the stages of the network return, in the order in which they arise
- ``embodiment_tag``, ``device``, ``producer``, ``versions``, ``kernels``: who computed this, on what
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

Arrays = dict[str, Any]

VERSIONED = ("torch", "torchvision", "transformers", "tokenizers", "diffusers", "albumentations", "numpy", "scipy")
IMAGE_SIZE = (240, 320)
PROMPTS = ("Pick up the black-bowl, and place it on the plate!", "open the drawer")
RTC_OPTIONS = ("action_horizon", "rtc_overlap_steps", "rtc_frozen_steps", "rtc_ramp_rate")


def main(argv: list[str] | None = None) -> int:
    """Dump every tag that was asked for."""
    arguments = parser("NVIDIA's original").parse_args(argv)
    original = Original(arguments.checkpoint, arguments.backbone, arguments.device)
    for observation in observations(arguments, original.modalities, original.statistics):
        arrays = original.dump(observation)
        write(arguments.out / f"original_n1_7_{observation['embodiment_tag']}.npz", arrays)
    return 0


def parser(implementation: str) -> argparse.ArgumentParser:
    """The command line that all producers share."""
    parser = argparse.ArgumentParser(description=f"Write what {implementation} GR00T N1.7 computes, as npz files.")
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="folder for one npz file a tag")
    parser.add_argument("--tags", default="", help="comma-separated embodiment tags (default: all of the checkpoint)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=42, help="of noise and made-up observations (default: %(default)s)")
    parser.add_argument(
        "--observations",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="npz files with embodiment_tag and raw::... keys, for instance earlier artifacts; what else they hold of "
        "seed, raw::action, rtc:: and train:: is used too (default: observations are made up)",
    )
    parser.add_argument(
        "--backbone",
        type=Path,
        help="folder of the backbone that config.json names; its weights are not needed, the checkpoint has them",
    )
    return parser


def observations(arguments: argparse.Namespace, modalities: Arrays, statistics: Arrays) -> Iterator[Arrays]:
    """What is to be computed, tag by tag."""
    wanted = [tag.strip() for tag in arguments.tags.split(",") if tag.strip()]
    if arguments.observations:
        for file in arguments.observations:
            with np.load(file) as archive:
                observation = {key: archive[key] for key in archive.files}
            observation["embodiment_tag"] = tag = str(observation["embodiment_tag"])
            if not wanted or tag in wanted:
                yield {"seed": arguments.seed, **observation}
        return
    known = [tag for tag in modalities if tag in statistics]
    for tag in wanted or known:
        if tag not in known:
            raise SystemExit(f"error: the checkpoint has no tag {tag}; it has {', '.join(known)}")
        yield made_up_observation(tag, modalities[tag], statistics[tag], arguments.seed)


def made_up_observation(tag: str, modality: Arrays, statistics: Arrays, seed: int) -> Arrays:
    """Two samples with smooth pictures, prompts of different lengths, and states in and a little beyond their range."""
    generator = np.random.default_rng(seed)
    batch = len(PROMPTS)
    observation: Arrays = {"embodiment_tag": tag, "seed": seed, "raw::language": np.array(PROMPTS)}
    frames = len(modality["video"].delta_indices)
    for key in modality["video"].modality_keys:
        observation[f"raw::video.{key}"] = np.stack(
            [[_picture(generator) for _ in range(frames)] for _ in range(batch)]
        )
    rows = len(modality["state"].delta_indices)
    for key in modality["state"].modality_keys:
        low, high = (np.asarray(statistics["state"][key][name], dtype=np.float64) for name in ("min", "max"))
        place = generator.uniform(-0.1, 1.1, (batch, rows, low.size))
        observation[f"raw::state.{key}"] = (low + place * (high - low)).astype(np.float32)
    return observation


def _picture(generator: np.random.Generator) -> np.ndarray:
    """Waves of colour with a bright rectangle: resizing, cropping and channel order all show in it."""
    height, width = IMAGE_SIZE
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    frequency, phase = generator.uniform(2, 12, (3, 2)), generator.uniform(0, 6, 3)
    waves = [np.sin(6.28 * (a * x + b * y) + p) for (a, b), p in zip(frequency, phase)]  # noqa: B905 - Python 3.9
    image = (127.5 + 100 * np.stack(waves, axis=-1)).astype(np.uint8)
    top, left = generator.integers(0, height // 2), generator.integers(0, width // 2)
    image[top : top + height // 4, left : left + width // 4] = generator.integers(0, 256, 3)
    return image


def write(path: Path, arrays: Arrays) -> None:
    """Write one artifact, and say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    print(f"{path}: actions {arrays['action_pred'].shape}, {path.stat().st_size / 1e6:.2f} MB")


class Original:
    """NVIDIA's processor and network of one checkpoint, in float32 with SDPA attention."""

    def __init__(self, checkpoint: Path, backbone: Path | None, device: str) -> None:
        import gr00t.model  # registers the classes
        from transformers import AutoConfig, AutoModel, AutoProcessor

        no_reduced_precision()
        self.device = device
        config = AutoConfig.from_pretrained(checkpoint)
        config.use_flash_attention = False
        config.load_bf16 = False
        with _backbone_from(config.model_name, backbone):
            self.model, loading = AutoModel.from_pretrained(checkpoint, config=config, output_loading_info=True)
            self.processor = AutoProcessor.from_pretrained(_processor_folder(checkpoint))
        # The output layer of the language model is tied to its embedding, and not used.
        missing = [name for name in loading["missing_keys"] if not name.endswith("lm_head.weight")]
        if missing:
            raise SystemExit(f"error: {checkpoint} has no weights for {', '.join(missing[:5])}")
        self.model.to(device=device, dtype=torch.float32).eval()
        self.processor.eval()
        self.modalities = self.processor.get_modality_configs()
        self.statistics = self.processor.state_action_processor.statistics
        self.source = source_of(gr00t.model.__file__, "gr00t")

    def dump(self, observation: Arrays) -> Arrays:
        """Compute everything about one observation."""
        tag, seed = observation["embodiment_tag"], int(observation["seed"])
        raw = self._raw(tag, observation)
        samples = self._process(tag, raw, actions=None)
        inputs = self._collate(samples)
        with recorded_stages(self.model) as recorded:
            action_pred = self._sample(inputs, seed)
        stages = {f"stage::{name}": _numpy(tensor) for name, tensor in recorded.items()}
        decoded = self._decode(tag, action_pred, raw)
        raw["action"] = raw["action"] or {key: values.astype(np.float32) for key, values in decoded.items()}
        return {
            **{
                f"raw::{kind}.{key}": values
                for kind in ("video", "state", "action")
                for key, values in raw[kind].items()
            },
            "raw::language": np.array(raw["language"]),
            "raw_video_keys": np.array(list(raw["video"])),
            "raw_state_keys": np.array(list(raw["state"])),
            **input_arrays(inputs),
            "stage::images": np.stack([[np.asarray(i) for i in s["vlm_content"]["images"]] for s in samples]),
            "stage::texts": np.array([sample["vlm_content"]["text"] for sample in samples]),
            **stages,
            "initial_noise": stages["stage::denoising.0.actions"],
            "action_pred": action_pred,
            **{f"decoded::{key}": values for key, values in decoded.items()},
            **self._real_time_chunking(tag, observation, inputs, action_pred, seed),
            **self._training_loss(tag, observation, raw, seed),
            **provenance(tag, seed, self.device, f"NVIDIA gr00t {self.source}"),
        }

    def _raw(self, tag: str, observation: Arrays) -> Arrays:
        modality = self.modalities[tag]
        raw: Arrays = {
            kind: {key: observation[f"raw::{kind}.{key}"] for key in modality[kind].modality_keys}
            for kind in ("video", "state")
        }
        prefix = "raw::action."
        raw["action"] = {key[len(prefix) :]: values for key, values in observation.items() if key.startswith(prefix)}
        raw["language"] = [str(text) for text in observation["raw::language"]]
        return raw

    def _process(self, tag: str, raw: Arrays, actions: Arrays | None) -> list[Arrays]:
        """Run the original's processor on every sample."""
        from gr00t.data.embodiment_tags import EmbodimentTag
        from gr00t.data.types import MessageType, VLAStepData

        random.seed(0)
        samples = []
        for index, text in enumerate(raw["language"]):
            step = VLAStepData(
                images={key: list(frames[index]) for key, frames in raw["video"].items()},
                states={key: values[index] for key, values in raw["state"].items()},
                actions={} if actions is None else {key: values[index] for key, values in actions.items()},
                text=text,
                embodiment=EmbodimentTag(tag),
            )
            samples.append(self.processor([{"type": MessageType.EPISODE_STEP.value, "content": step}]))
        return samples

    def _collate(self, samples: list[Arrays]) -> Arrays:
        inputs = self.processor.collator(samples)["inputs"]
        return {
            key: value.to(self.device, torch.float32 if torch.is_floating_point(value) else value.dtype)
            for key, value in inputs.items()
        }

    def _sample(self, inputs: Arrays, seed: int, options: Arrays | None = None) -> np.ndarray:
        torch.manual_seed(seed)
        with torch.inference_mode(), correctly_rounded_exp():
            prediction = (
                self.model.get_action(dict(inputs), options) if options else self.model.get_action(dict(inputs))
            )
        return _numpy(prediction["action_pred"])

    def _decode(self, tag: str, action_pred: np.ndarray, raw: Arrays) -> Arrays:
        from gr00t.data.embodiment_tags import EmbodimentTag

        decoded: Arrays = self.processor.decode_action(action_pred, EmbodimentTag(tag), raw["state"])
        return decoded

    def _real_time_chunking(
        self, tag: str, observation: Arrays, inputs: Arrays, action_pred: np.ndarray, seed: int
    ) -> Arrays:
        """The same noise, begun with rows of a previous chunk; by default with the end of the chunk itself."""
        horizon = len(self.modalities[tag]["action"].delta_indices)
        overlap = max(1, horizon // 2)
        usual: Arrays = {"action_horizon": horizon, "rtc_overlap_steps": overlap, "rtc_frozen_steps": overlap // 3}
        usual["rtc_ramp_rate"] = 6.0
        chosen = {key: observation.get(f"rtc::{key}", value) for key, value in usual.items()}
        options = {key: type(usual[key])(value) for key, value in chosen.items()}
        previous = np.asarray(observation.get("rtc::previous", action_pred), dtype=np.float32)
        chunked = self._sample({**inputs, "action": torch.from_numpy(previous).to(self.device)}, seed, options)
        return {
            "rtc::previous": previous,
            **{f"rtc::{key}": np.array(value) for key, value in options.items()},
            "rtc::action_pred": chunked,
        }

    def _training_loss(self, tag: str, observation: Arrays, raw: Arrays, seed: int) -> Arrays:
        """The loss for drawn noise and time, in evaluation mode: no dropout, no augmentation."""
        inputs = self._collate(self._process(tag, raw, raw["action"]))
        head = self.model.action_head
        torch.manual_seed(seed)
        noise = torch.randn(inputs["action"].shape, device=self.device)
        time = head.sample_time(len(noise), device=self.device, dtype=torch.float32)
        if "train::noise" in observation:
            noise, time = (torch.from_numpy(observation[f"train::{key}"]).to(self.device) for key in ("noise", "t"))
        drawn = mock.patch.object(head, "sample_time", return_value=time)
        given = mock.patch.object(torch, "randn", return_value=noise)
        with drawn, given, torch.no_grad(), correctly_rounded_exp():
            loss = self.model(dict(inputs))
        return {
            **{f"train::{key}": _numpy(inputs[key]) for key in ("action", "action_mask")},
            "train::noise": _numpy(noise),
            "train::t": _numpy(time),
            "train::loss": _numpy(loss["loss"]),
            "train::action_loss": _numpy(loss["action_loss"]),
        }


@contextmanager
def recorded_stages(model: Any) -> Iterator[dict[str, torch.Tensor]]:
    """Record what the network's stages return while it samples once."""
    stages: dict[str, torch.Tensor] = {}
    step = -1

    with ExitStack() as hooks:

        def output(module: Any, stage: str) -> None:
            def record(_module: Any, _inputs: Any, result: Any) -> None:
                first = result[0] if isinstance(result, tuple) else result
                stages[stage.format(step=step)] = (
                    (first["backbone_features"] if hasattr(first, "keys") else first).detach().clone()
                )

            hooks.callback(module.register_forward_hook(record).remove)

        def next_step(_module: Any, inputs: Any) -> None:
            nonlocal step
            step += 1
            stages[f"denoising.{step}.actions"] = inputs[0].detach().clone()

        qwen, head = model.backbone.model.model, model.action_head
        for index, merger in enumerate(qwen.visual.deepstack_merger_list):
            output(merger, f"vision.deepstack.{index}")
        output(qwen.visual.merger, "vision.features")
        for index, layer in enumerate(qwen.language_model.layers):
            output(layer, f"language.layer.{index}")
        output(model.backbone, "language.features")
        output(head.vlln, "vlln")
        output(head.vl_self_attention, "vl_self_attention")
        output(head.state_encoder, "state_features")
        hooks.callback(head.action_encoder.register_forward_pre_hook(next_step).remove)
        for index, block in enumerate(head.model.transformer_blocks):
            output(block, f"denoising.{{step}}.block.{index}")
        output(head.model, "denoising.{step}.transformer")
        output(head.action_decoder, "denoising.{step}.velocity")
        yield stages


def no_reduced_precision() -> None:
    """Compute in true float32 on GPUs too, and the same way every time."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


@contextmanager
def correctly_rounded_exp() -> Iterator[None]:
    """Compute ``torch.exp`` through float64, so that every processor gives the same time frequencies.

    Processors round float32 exponentials differently, and one unit in the last place of a frequency moves the angle of
    time bucket 750 by 5e-5: enough to move actions by 1e-3 in a network that amplifies it.
    """
    exp = torch.exp

    def rounded(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
        return (
            exp(tensor.double(), **options).to(tensor.dtype)
            if torch.is_floating_point(tensor)
            else exp(tensor, **options)
        )

    with mock.patch.object(torch, "exp", rounded):
        yield


def input_arrays(inputs: Arrays) -> Arrays:
    """The collated inputs under the names of the artifact, with their types."""
    names = [f"in::inputs.{key}" for key in inputs]
    arrays = {f"in::inputs.{key}": _numpy(value) for key, value in inputs.items()}
    types = np.array([str(value.dtype) for value in inputs.values()])
    return {**arrays, "meta_keys": np.array(names), "meta_dtypes": types}


def provenance(tag: str, seed: int, device: str, producer: str) -> Arrays:
    """Who computed this, with which versions, on which device and kernels."""
    versions = {name: _version(name) for name in VERSIONED}
    versions.update(python=platform.python_version(), opencv=_opencv_version())
    kernels = {
        "attention": "sdpa",
        "dtype": "float32",
        "exp": "through float64",
        "tf32": bool(torch.backends.cuda.matmul.allow_tf32),
        "threads": torch.get_num_threads(),
        "processor": torch.cuda.get_device_name()
        if device.startswith("cuda")
        else torch.backends.cpu.get_cpu_capability(),
    }
    return {
        "embodiment_tag": np.array(tag),
        "seed": np.array(seed),
        "device": np.array(device),
        "producer": np.array(producer),
        "versions": np.array(json.dumps(versions)),
        "kernels": np.array(json.dumps(kernels)),
    }


def source_of(file: str | None, distribution: str) -> str:
    """The commit that a package was run from, or its version where it is no checkout."""
    command = ["git", "-C", str(Path(str(file)).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return _version(distribution)


@contextmanager
def _backbone_from(model_name: str, folder: Path | None) -> Iterator[None]:
    """Read the backbone's files from a folder instead of the hub, its weights not at all: the checkpoint has them."""
    if folder is None:
        yield
        return
    from transformers import AutoConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor

    load_processor = Qwen3VLProcessor.from_pretrained

    def processor(source: Any, *arguments: Any, **options: Any) -> Any:
        return load_processor(folder if source == model_name else source, *arguments, **options)

    def network(_source: Any, *_arguments: Any, **_options: Any) -> Any:
        config = AutoConfig.from_pretrained(folder)
        return Qwen3VLForConditionalGeneration._from_config(config, attn_implementation="sdpa")

    with (
        mock.patch.object(Qwen3VLProcessor, "from_pretrained", processor),
        mock.patch.object(Qwen3VLForConditionalGeneration, "from_pretrained", network),
    ):
        yield


def _processor_folder(checkpoint: Path) -> Path:
    """Where the processor's files lie: at the root, or in ``processor/`` after a training."""
    inner = checkpoint / "processor"
    return inner if inner.is_dir() and not (checkpoint / "processor_config.json").exists() else checkpoint


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    return (tensor.float() if torch.is_floating_point(tensor) else tensor).numpy()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "of unknown version"


def _opencv_version() -> str:
    try:
        import cv2
    except ImportError:
        return "none"
    return str(cv2.__version__)


if __name__ == "__main__":
    raise SystemExit(main())
