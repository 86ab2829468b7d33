"""``trajectory.png``: what the chunks commanded and what the robot's joints did."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from groot_ros.demo.following import Following
from groot_ros.demo.trials import TOLERANCE_OF_REACH

DISTANCE = "#3c7a57"
COMMANDED = "#c0392b"
MEASURED = "#2c5f8a"


def draw_following(following: Following, joints: tuple[str, ...], path: Path) -> None:
    """Write a picture: the way to each target, and for each joint what was commanded and measured, over time."""
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10, 2.0 * len(joints) + 2.6), layout="constrained")
        first, *panels = figure.subplots(len(joints) + 1, 1, sharex=True)
        first.plot(following.times_s, 100 * following.distance, color=DISTANCE, linewidth=1.4)
        first.axhline(100 * TOLERANCE_OF_REACH, color=DISTANCE, linewidth=0.8, linestyle=":")
        first.set_ylabel("tip to target\n(% of the reach)")
        first.set_ylim(bottom=0)
        first.grid(visible=True, alpha=0.25)
        first.margins(x=0)
        for index, (panel, name) in enumerate(zip(panels, joints, strict=True)):
            panel.plot(
                following.times_s,
                following.commanded[:, index],
                color=COMMANDED,
                linewidth=1.0,
                label="commanded (chunks)",
            )
            panel.plot(following.times_s, following.measured[:, index], color=MEASURED, linewidth=1.4, label="measured")
            panel.set_ylabel(f"{name} (rad)")
            panel.grid(visible=True, alpha=0.25)
            panel.margins(x=0)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)
        panels[-1].set_xlabel("time since the policy was enabled (s)")
        figure.suptitle("What the policy's chunks said, and what the robot did", x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
