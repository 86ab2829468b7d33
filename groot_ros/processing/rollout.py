"""What a simulator wants changed in decoded actions before it executes them: the rollout transform of a tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import ProcessingError

Groups = Mapping[str, NDArray[np.float64]]

LIBERO_TAG = "libero_sim"
LIBERO_GRIPPER = "gripper"
LIBERO_OPEN = -1.0
LIBERO_CLOSE = 1.0
TRANSFORMS = ("auto", "none", "libero")


@dataclass(frozen=True)
class RolloutTransform:
    """The transform that was chosen; call it with the groups of a chunk.

    Attributes:
        name: ``none`` or ``libero``.

    """

    name: str

    @property
    def changed_groups(self) -> tuple[str, ...]:
        """The action groups that it changes."""
        return () if self.name == "none" else (LIBERO_GRIPPER,)

    def __call__(
        self, groups: Groups, row_before: Mapping[str, NDArray[np.float64]] | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Return the groups as the simulator takes them; the input stays as it is.

        Args:
            groups: Decoded values ``(T, D)`` by key.
            row_before: The row ``(D,)`` by key that was sent before the first of these, already transformed; None
                where there was none.

        Raises:
            ProcessingError: The transform needs a group that is not there, or a value is not finite.

        """
        if self.name == "none":
            return dict(groups)
        gripper = groups.get(LIBERO_GRIPPER)
        if gripper is None or gripper.ndim != 2 or gripper.shape[1] != 1:
            found = ", ".join(f"{key!r} of shape {values.shape}" for key, values in groups.items())
            msg = (
                f"action_decode_transform: libero needs an action group {LIBERO_GRIPPER!r} of one dimension, found "
                f"{found}; set it to none"
            )
            raise ProcessingError(msg)
        if not np.isfinite(gripper).all():
            row = int(np.argmax(~np.isfinite(gripper[:, 0])))
            msg = f"action group {LIBERO_GRIPPER!r}, dimension 0, row {row} is {gripper[row, 0]}: it commands nothing"
            raise ProcessingError(msg)
        before = LIBERO_OPEN if row_before is None else float(row_before[LIBERO_GRIPPER][0])
        return {**groups, LIBERO_GRIPPER: libero_gripper(gripper[:, 0], before)[:, None]}


def rollout_transform(name: str, embodiment_tag: str) -> RolloutTransform:
    """Choose the transform by its name; ``auto`` is ``libero`` for the tag libero_sim and ``none`` for all others.

    Raises:
        ProcessingError: The name is unknown.

    """
    if name not in TRANSFORMS:
        msg = f"action_decode_transform: found {name!r}; allowed are {', '.join(TRANSFORMS)}"
        raise ProcessingError(msg)
    if name == "auto":
        return RolloutTransform("libero" if embodiment_tag == LIBERO_TAG else "none")
    return RolloutTransform(name)


def libero_gripper(gripper: NDArray[np.floating], before: float = LIBERO_OPEN) -> NDArray[np.float64]:
    """Turn the gripper of the data, 1 open to 0 closed, into LIBERO's command, -1 open and +1 close.

    Exactly 0.5 says neither and keeps the row before (the original sends -0.0, which is no command).

    Args:
        gripper: Decoded values ``(T,)``; NaN passes through.
        before: The command before the first row.

    """
    commands = np.where(gripper > 0.5, LIBERO_OPEN, np.where(gripper < 0.5, LIBERO_CLOSE, np.nan)).astype(np.float64)
    for row in np.flatnonzero(gripper == 0.5):
        commands[row] = commands[row - 1] if row else before
    return commands
