"""How well each way of joining chunks moves a robot, with a noisy policy and latency: the table of docs/motion.md.

A smooth demonstration is followed by a synthetic policy that errs: each chunk is off by a constant (normal, 2 % of the
range of each joint), each row by a little more (0.5 %). Real-time chunking is honoured as GR00T N1.7 does it: frozen
rows come back verbatim, the rows after them move from the old plan to the new one by four damped steps.

    python -m benchmarks.motion [--horizon 16] [--rows-executed 8]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.execution.commands import ArrayCommand
from groot_ros.execution.executor import Executor
from groot_ros.execution.metrics import MotionReport, motion_report
from groot_ros.execution.status import Inference
from groot_ros.observation import ActionChunk

RATE_HZ = 30
PERIOD_S = 1.0 / RATE_HZ
DURATION_S = 120.0
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
CHUNK_OFFSET = 0.02
ROW_NOISE = 0.005
SEED = 7
LATENCIES_S = (0.05, 0.1, 0.2, 0.4)
WAYS = ("synchronous", "replace", "blend", "ensemble", "rtc")
FLOW_STEPS = 4
RAMP_RATE = 6.0

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One way at one latency.

    Attributes:
        report: The metrics of the motion.
        expired: Rows of a chunk that had passed before it could be executed, on average.
        chunks: Chunks executed.

    """

    report: MotionReport
    expired: float
    chunks: int


def demonstration(seed: int = SEED) -> Callable[[Rows], Rows]:
    """A motion like a hand-led arm's: smooth ways (minimum jerk) of 1 to 2.5 s between random postures, with rests."""
    random = np.random.default_rng(seed)
    times, postures = [0.0], [random.uniform(-1.0, 1.0, len(JOINTS))]
    while times[-1] < DURATION_S + 5.0:
        times.append(times[-1] + random.uniform(1.0, 2.5))
        postures.append(random.uniform(-1.0, 1.0, len(JOINTS)))
        if random.random() < 0.3:
            times.append(times[-1] + 0.4)
            postures.append(postures[-1])
    starts, values = np.array(times), np.array(postures)

    def at(time_s: Rows) -> Rows:
        index = np.clip(np.searchsorted(starts, time_s, side="right") - 1, 0, len(starts) - 2)
        part = np.clip((time_s - starts[index]) / (starts[index + 1] - starts[index]), 0.0, 1.0)
        way = part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
        return values[index] + way[:, None] * (values[index + 1] - values[index])

    return at


class NoisyPolicy:
    """Knows the demonstration, and errs by the stated noise."""

    def __init__(self, at: Callable[[Rows], Rows], horizon: int, value_range: Rows, seed: int = SEED) -> None:
        self._at = at
        self._horizon = horizon
        self._range = value_range
        self._random = np.random.default_rng(seed)

    def predict(self, stamp_ns: int, inference: Inference) -> ActionChunk:
        """The chunk for an observation, joined to the prefix where there is one."""
        rows = self._at(stamp_ns / 1e9 + np.arange(self._horizon) * PERIOD_S)
        rows += self._random.normal(0.0, CHUNK_OFFSET, len(JOINTS)) * self._range
        rows += self._random.normal(0.0, ROW_NOISE, rows.shape) * self._range
        if inference.prefix is not None:
            previous = inference.prefix.groups["arm"]
            kept = remaining_share(len(previous), inference.frozen_rows)[:, None]
            rows[: len(previous)] += kept * (previous - rows[: len(previous)])
        return ActionChunk(stamp_ns, PERIOD_S, {"arm": rows}, {"arm": list(JOINTS)})


def remaining_share(overlap: int, frozen: int) -> Rows:
    """How much of the old plan is left in each prefix row after N1.7's four damped steps, with a perfect network.

    A step moves a row by ``ramp / (steps left)`` of its way to the new plan: all of it where the ramp is 1.
    """
    ramp = np.zeros(overlap)
    time = np.linspace(0.0, 1.0, overlap - frozen + 2)[1:-1]
    ramp[frozen:] = (1.0 - np.exp(-RAMP_RATE * time)) / (1.0 - np.exp(-RAMP_RATE))
    left = np.ones(overlap)
    for step in range(FLOW_STEPS):
        left *= 1.0 - ramp / (FLOW_STEPS - step)
    return left


def contract(way: str, rows_executed: int) -> Contract:
    """Five joints sent as an array at the row rate; limits and start gate are not what is measured here."""
    motion = {"hold_s": 1.0, "start_tolerance": 10.0, "execution_horizon": rows_executed}
    motion |= {"mode": "synchronous"} if way == "synchronous" else {"strategy": way}
    return Contract.model_validate(
        {
            "contract_version": 1,
            "robot": "benchmark",
            "embodiment_tag": "new_embodiment",
            "rate_hz": RATE_HZ,
            "cameras": {"front": {"topic": "image"}},
            "state": {"arm": {"topic": "joint_states", "joints": list(JOINTS)}},
            "actions": {"arm": {"meaning": "position"}},
            "outputs": {
                "arm": {"type": "position_command", "topic": "commands", "from": {"arm": "all"}, "names": list(JOINTS)}
            },
            "limits": "none",
            "motion": motion,
        }
    )


def run(way: str, latency_s: float, *, horizon: int = 16, rows_executed: int = 8, seed: int = SEED) -> Run:
    """Move along the demonstration once."""
    at = demonstration(seed)
    stamps_s = np.arange(round(DURATION_S * RATE_HZ)) * PERIOD_S
    wanted = at(stamps_s)
    policy = NoisyPolicy(at, horizon, np.ptp(wanted, axis=0), seed)
    executor = Executor(contract(way, rows_executed), horizon=horizon)
    latency_ns = round(latency_s * 1e9)
    executed, seams, expired = [], [], []
    running: tuple[int, int, Inference] | None = None
    for time_s in stamps_s:
        now_ns, arrived = round(time_s * 1e9), False
        if running is not None and running[0] <= now_ns:
            arrival_ns, stamp_ns, inference = running
            arrived = executor.accept(policy.predict(stamp_ns, inference), inference, arrival_ns).accepted
            expired.append(0 if way == "synchronous" else int(np.ceil((arrival_ns - stamp_ns) / 1e9 / PERIOD_S)))
            running = None
        position = executed[-1] if executed else wanted[0]
        executor.observe({"arm": position[None].astype(np.float32)}, now_ns, now_ns)
        for command in executor.commands(now_ns):
            assert isinstance(command, ArrayCommand)
            position = command.values
        if arrived:
            seams.append(len(executed))
        executed.append(position)
        if running is None and executor.inference_due(now_ns):
            running = (now_ns + latency_ns, now_ns, executor.begin_inference(now_ns, now_ns))
    status = executor.status(round(stamps_s[-1] * 1e9))
    # The first second belongs to the start: no latency is known yet, and the arm stands.
    skip = RATE_HZ
    report = motion_report(
        np.array(executed)[skip:],
        wanted[skip:],
        np.array([seam - skip for seam in seams if seam > skip], dtype=np.intp),
        PERIOD_S,
        holds=sum(status.holds.values()),
        clips=sum(status.clips.values()),
    )
    return Run(report, float(np.mean(expired)), status.chunks)


def table(horizon: int, rows_executed: int) -> str:
    """The table in Markdown."""
    lines = [
        "| latency | way | seam p95 | seam max | jerk ratio | above 3 Hz | idle | tracking error | expired rows |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for latency_s in LATENCIES_S:
        for way in WAYS:
            result = run(way, latency_s, horizon=horizon, rows_executed=rows_executed)
            report = result.report
            lines.append(
                f"| {latency_s * 1000:.0f} ms | {way} | {report.seam_p95:.2%} | {report.seam_max:.2%} "
                f"| {report.jerk_ratio:.1f} | {report.high_frequency:.1%} | {report.idle:.1%} "
                f"| {report.tracking:.2%} | {result.expired:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the ways of joining action chunks.")
    parser.add_argument("--horizon", type=int, default=16, help="rows of a chunk")
    parser.add_argument("--rows-executed", type=int, default=8, help="rows executed before the next chunk")
    arguments = parser.parse_args()
    print(table(arguments.horizon, arguments.rows_executed))


if __name__ == "__main__":
    main()
