"""Runs inside an environment with the real LeRobot: reads a dataset, appends to it, and prints what it saw as JSON.

Usage: ``python lerobot_peer.py read ROOT`` or ``python lerobot_peer.py append ROOT EPISODES ROWS``.
"""

import json
import sys

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def read(root):
    dataset = LeRobotDataset("local/dataset", root=root, video_backend="pyav")
    windows = LeRobotDataset(
        "local/dataset",
        root=root,
        video_backend="pyav",
        delta_timestamps={"observation.images.front": [-0.1, 0.0], "action": [row / dataset.fps for row in range(4)]},
    )
    cameras = dataset.meta.camera_keys
    samples = []
    for number in range(0, len(dataset), 7):
        item = dataset[number]
        frames = {key: (item[key].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8) for key in cameras}
        samples.append(
            {
                "number": number,
                "episode": int(item["episode_index"]),
                "row": int(item["frame_index"]),
                "task": item["task"],
                "state": item["observation.state"].tolist(),
                "action": item["action"].tolist(),
                "frames": {key: [int(frame[0, 0, channel]) for channel in range(3)] for key, frame in frames.items()},
                "sums": {key: int(frame.astype(np.int64).sum()) for key, frame in frames.items()},
            }
        )
    edge = windows[int(dataset.meta.episodes[0]["dataset_to_index"]) - 1]
    return {
        "rows": len(dataset),
        "lengths": [int(length) for length in dataset.meta.episodes["length"]],
        "tasks": dataset.meta.tasks.index.tolist(),
        "samples": samples,
        "padded_actions": edge["action_is_pad"].tolist(),
        "history_shape": list(edge["observation.images.front"].shape),
    }


def append(root, episodes, rows):
    dataset = LeRobotDataset.resume("local/dataset", root=root)
    shapes = {key: tuple(feature["shape"]) for key, feature in dataset.features.items()}
    for episode in range(episodes):
        for row in range(rows):
            vectors = {
                key: np.full(shapes[key], 10 * episode + row, dtype=np.float32)
                for key in ("observation.state", "action")
            }
            frames = {key: np.full(shapes[key], 5 * row, dtype=np.uint8) for key in dataset.meta.camera_keys}
            for picture in frames.values():
                picture[:, : picture.shape[1] // 2] += 20
            dataset.add_frame({"task": "appended", **vectors, **frames})
        dataset.save_episode()
    dataset.finalize()
    return read(root)


if __name__ == "__main__":
    command, path, *numbers = sys.argv[1:]
    seen = read(path) if command == "read" else append(path, *map(int, numbers))
    print("SEEN " + json.dumps(seen))
