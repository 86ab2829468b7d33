"""The processor pipelines that LeRobot saves beside a policy: steps with their configuration and their numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from groot_ros.checkpoint.fields import Fields, read_json
from groot_ros.checkpoint.versions import n1_5_refusal
from groot_ros.errors import CheckpointError

PACK = "groot_n1_7_pack_inputs_v1"
ENCODE = "groot_n1_7_vlm_encode_v1"
DECODE = "groot_n1_7_action_decode_v1"
UNPACK = "groot_action_unpack_unnormalize_v2"
# Steps that move or rename data and change no number.
_PLAIN_STEPS = frozenset({"rename_observations_processor", "to_batch_processor", "device_processor"})
_N1_5_STEPS = frozenset(
    {
        "groot_pack_inputs_v3",
        "groot_eagle_encode_v3",
        "groot_eagle_collate_v3",
        "groot_action_unpack_unnormalize_v1",
    }
)


def read_steps(path: Path) -> dict[str, Fields]:
    """Read a pipeline: step name to its configuration, with the name of its state file added."""
    steps: dict[str, Fields] = {}
    entries = read_json(path).get("steps")
    if not isinstance(entries, list):
        msg = f"{path}: steps is missing: this is not a processor pipeline of LeRobot."
        raise CheckpointError(msg)
    for entry in entries:
        step = Fields(entry, f"{path}: a step")
        name = step.value("registry_name")
        if name in _N1_5_STEPS:
            raise n1_5_refusal(str(path), f"its step {name} belongs to N1.5")
        if name in (PACK, ENCODE, DECODE, UNPACK):
            config = step.value("config") or {}
            steps[name] = Fields({**config, "state_file": step.value("state_file")}, f"{path}: {name}")
        elif name not in _PLAIN_STEPS:
            msg = f"{path}: the step {name or step.value('class')} is unknown: it may change the numbers."
            raise CheckpointError(msg)
    return steps


def read_state(directory: Path, step: Fields) -> dict[str, list[float]]:
    """Read the numbers of a step."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    name = step.text("state_file")
    path = directory / name
    if Path(name).name != name or not name.endswith(".safetensors"):
        step.refuse("state_file", "a safetensors file in the same folder")
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        msg = f"{path} is missing: copy the whole checkpoint folder, or download it again."
        raise CheckpointError(msg) from None
    except (OSError, SafetensorError) as error:
        msg = f"{path} is damaged ({error}): copy or download it again."
        raise CheckpointError(msg) from error
    return {key: np.asarray(values, dtype=np.float64).ravel().tolist() for key, values in tensors.items()}
