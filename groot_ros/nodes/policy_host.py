"""The policy of a process: loaded for the first robot that wants it, shared by all, let go with the last."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from pathlib import Path

from groot_ros.errors import ContractError
from groot_ros.nodes.policy_worker import InferenceWorker
from groot_ros.policy import GrootPolicy


@dataclass(frozen=True)
class PolicySettings:
    """What a policy is loaded with: the same for all robots of a process. The field names are those of parameters."""

    checkpoint: str
    embodiment_tag: str
    rate_hz: float
    device: str
    dtype: str | None
    backbone: Path | None
    allow_download: bool
    action_decode_transform: str


class PolicyHost:
    """Holds the policy and its thread while there are robots.

    Args:
        robots: How many there will be.

    """

    def __init__(self, robots: int = 1) -> None:
        self.robots = robots
        self._lock = threading.Lock()
        self._settings: PolicySettings | None = None
        self._worker: InferenceWorker | None = None
        self._names: list[str] = []

    def enter(self, robot: str, settings: PolicySettings) -> InferenceWorker:
        """The policy for one more robot; waits while it is being loaded for another.

        Args:
            robot: Full name of the robot's node.
            settings: What it wants.

        Raises:
            ContractError: It wants another policy than the robots that are there.
            GrootError: The policy cannot be loaded.

        """
        with self._lock:
            if self._worker is None or self._settings is None:
                self._worker, self._settings = InferenceWorker(_load(settings)), settings
            else:
                self._refuse_others(robot, settings, self._settings)
            self._names.append(robot)
            return self._worker

    def leave(self, robot: str) -> bool:
        """Note that a robot needs the policy no more; whether its thread, were it the last, has ended."""
        with self._lock:
            self._names.remove(robot)
            if self._names or self._worker is None:
                return True
            worker, self._worker, self._settings = self._worker, None, None
            return worker.stop()

    def _refuse_others(self, robot: str, wanted: PolicySettings, loaded: PolicySettings) -> None:
        differences = [
            f"{field.name} {getattr(wanted, field.name)!s} instead of {getattr(loaded, field.name)!s}"
            for field in fields(PolicySettings)
            if getattr(wanted, field.name) != getattr(loaded, field.name)
        ]
        if differences:
            msg = (
                f"{robot}: wants {', '.join(differences)}, as {', '.join(self._names)} in this process has it; robots "
                "of one process share one policy, so start a process of its own for this robot"
            )
            raise ContractError(msg)


def _load(settings: PolicySettings) -> GrootPolicy:
    return GrootPolicy.from_checkpoint(
        settings.checkpoint,
        settings.embodiment_tag,
        device=settings.device,
        dtype=settings.dtype,
        rate_hz=settings.rate_hz,
        backbone=settings.backbone,
        allow_download=settings.allow_download,
        action_decode_transform=settings.action_decode_transform,
    )
