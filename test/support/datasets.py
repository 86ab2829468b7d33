"""Small datasets whose every value is known."""

from pathlib import Path

import numpy as np

from groot_ros.dataset.layout import LayoutVersion
from groot_ros.dataset.spec import DatasetSpec, RelativeAction
from groot_ros.dataset.stage import EpisodeStage
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.dataset.writer import DatasetWriter
from groot_ros.numerics.relative import RelativeKind

FPS = 20
SIZES = {"front": (32, 48), "wrist": (32, 48)}
TASKS = ("put the cube in the bowl", "open the drawer")
START_NS = 1_700_000_000_123_456_789
HORIZON = 8


def make_spec(**changes) -> DatasetSpec:
    values = {
        "fps": FPS,
        "robot_type": "so101",
        "state": {"single_arm": ("shoulder", "elbow", "wrist"), "gripper": ("gripper",)},
        "action": {"single_arm": ("shoulder", "elbow", "wrist"), "gripper": ("gripper",)},
        "cameras": SIZES,
        "encoding": VideoEncoding(codec="lossless"),
        "relative_actions": (
            RelativeAction(
                action_key="single_arm",
                state_key="single_arm",
                delta_indices=tuple(range(HORIZON)),
                kind=RelativeKind.JOINTS,
                embodiment_tag="new_embodiment",
            ),
        ),
    }
    return DatasetSpec(**values | changes)


def frame(camera: str, episode: int, row: int) -> np.ndarray:
    """A picture that says which camera, episode and row it is, and that differs from all others."""
    height, width = SIZES[camera]
    picture = np.random.default_rng([len(camera) + ord(camera[0]), episode, row]).integers(0, 256, (height, width, 3))
    return picture.astype(np.uint8)


def state(episode: int, row: int) -> dict[str, np.ndarray]:
    phase = 0.1 * row + episode
    return {"single_arm": np.sin([phase, 1.3 * phase, 0.7 * phase]), "gripper": np.array([row % 10 / 10])}


def action(episode: int, row: int) -> dict[str, np.ndarray]:
    phase = 0.1 * (row + 2) + episode
    return {"single_arm": 1.1 * np.sin([phase, 1.3 * phase, 0.7 * phase]), "gripper": np.array([(row + 2) % 10 / 10])}


def stamp_ns(row: int) -> int:
    return START_NS + row * 1_000_000_000 // FPS


def image_stamps_ns(row: int) -> dict[str, int]:
    return {"front": stamp_ns(row) - 1_234_567, "wrist": stamp_ns(row) + 7_654_321}


def add_rows(stage: EpisodeStage, episode: int, rows: int, *, tasks=TASKS) -> None:
    for row in range(rows):
        stage.add(
            task=tasks[episode % len(tasks)],
            state=state(episode, row),
            action=action(episode, row),
            images={camera: frame(camera, episode, row) for camera in SIZES},
            stamp_ns=stamp_ns(row),
            image_stamps_ns=image_stamps_ns(row),
        )


def write_dataset(
    root: Path,
    lengths=(30, 25, 28),
    *,
    spec: DatasetSpec | None = None,
    version: LayoutVersion = LayoutVersion.V3_0,
    tasks=TASKS,
) -> Path:
    with DatasetWriter(root, spec or make_spec(), version=version) as writer:
        for episode, rows in enumerate(lengths):
            with writer.episode(f"bag_{episode}", labels={"success": episode != 1}, threads=1) as stage:
                add_rows(stage, episode, rows, tasks=tasks)
    return root
