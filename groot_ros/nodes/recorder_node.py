"""Node ``groot_recorder``: episodes of a robot as rosbag2 files, driven by services, a terminal, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from groot_ros.contract import load_contract
from groot_ros.errors import ContractError, RecordingError
from groot_ros.nodes.recorder_topics import RecorderTopics
from groot_ros.recording import RecordingSession, recorded_topics
from groot_ros.recording.session import FinishedEpisode
from groot_ros.recording.topics import max_gap_ns

TAKE_PERIOD_S = 0.02
CHECK_PERIOD_S = 0.25
LOOK_PERIOD_S = 0.5
STATUS_PERIOD_S = 0.5


@dataclass(frozen=True)
class RecorderOptions:
    """What a recorder is told.

    Attributes:
        contract: The contract's file.
        output: Folder of the recordings.
        instructions: What the operator may step through; none takes the contract's.
        least_free_bytes: Space that is kept free on the disk.

    """

    contract: Path
    output: Path
    instructions: tuple[str, ...] = ()
    least_free_bytes: int = 2 << 30


class RecorderNode(Node):
    """Hears all topics of a contract all the time, and writes them while an episode is under way.

    Args:
        options: What it is told.
        say: Takes sentences for the operator; None logs them.

    """

    def __init__(
        self,
        options: RecorderOptions,
        say: Callable[[str], None] | None = None,
        **node_options: Any,  # noqa: ANN401 - rclpy's own
    ) -> None:
        super().__init__("groot_recorder", start_parameter_services=False, enable_rosout=False, **node_options)
        self._say = say or self.get_logger().info
        contract = load_contract(options.contract)
        self.instructions = tuple(text for text in (options.instructions or (contract.instruction,)) if text.strip())
        if not self.instructions:
            msg = f"{options.contract}: instruction is empty; write one there, or give --instruction"
            raise ContractError(msg)
        self.instruction = self.instructions[0]
        topics = {self.resolve_topic_name(topic.topic): topic for topic in recorded_topics(contract)}
        self.session = RecordingSession(
            options.output, topics, max_gap_ns=max_gap_ns(contract), least_free_bytes=options.least_free_bytes
        )
        self.session.try_disk()
        self._doubt_said = False
        if contract.record.action_from_state is not None:
            self._say(
                "this contract records no commands: the actions of the dataset will be later states, "
                "so a policy will not learn to push; name the commands under record"
            )
        self._time = self.get_clock()
        self.topics = RecorderTopics(self, topics, self._hear, self.session.set_qos)
        for name, work in (("start", self.start), ("stop", self.stop), ("discard", self.discard)):
            self.create_service(Trigger, f"~/{name}", _answer(work))
        self.create_subscription(String, "~/instruction", lambda message: self.instruct(message.data), 10)
        self._status = self.create_publisher(DiagnosticStatus, "~/status", 10)
        # By a steady clock: the disk fills also while simulated time stands still.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(TAKE_PERIOD_S, self.topics.take, clock=steady)
        self.create_timer(CHECK_PERIOD_S, self._check, clock=steady)
        self.create_timer(LOOK_PERIOD_S, self.topics.look, clock=steady)
        self.create_timer(STATUS_PERIOD_S, self._publish_status, clock=steady)

    def now_ns(self) -> int:
        """Now, by the clock that also says when a message came."""
        return int(self._time.now().nanoseconds)

    def start(self) -> str:
        """Begin an episode.

        Raises:
            RecordingError: It cannot begin; the sentence says why.

        """
        self.topics.take()  # what came before does not belong to the episode
        name = self.session.start(self.now_ns(), self.instruction)
        sentence = f"recording {name}: {self.instruction}"
        doubt = self.session.disk_doubt()
        self._doubt_said = doubt is not None
        if doubt is not None:
            sentence += f"; {doubt}"
        self._say(sentence)
        return sentence

    def stop(self) -> str:
        """End the episode and keep it.

        Raises:
            RecordingError: None is under way, or it cannot be finished.

        """
        self.topics.take()  # what came until now does
        return self._finished(self.session.stop(self.now_ns()))

    def discard(self) -> str:
        """Put the episode under way, or else the last one, aside.

        Raises:
            RecordingError: There is none.

        """
        sentence = f"put aside: {self.session.discard()}"
        self._say(sentence)
        return sentence

    def redo(self) -> str:
        """Put the episode under way, or else the last one, aside and begin another.

        Raises:
            RecordingError: There is none, or no other can begin.

        """
        self.discard()
        return self.start()

    def next_instruction(self) -> str:
        """Step to the next instruction."""
        following = (self.instructions.index(self.instruction) + 1) if self.instruction in self.instructions else 0
        return self.instruct(self.instructions[following % len(self.instructions)])

    def instruct(self, text: str) -> str:
        """Take another instruction; within an episode it holds from now on."""
        if not text.strip():
            sentence = "an empty instruction was ignored"
        else:
            self.instruction = text
            self.session.instruct(self.now_ns(), text)
            sentence = f"instruction: {text}"
        self._say(sentence)
        return sentence

    def close(self) -> None:
        """The last thing before the process ends: an episode under way is finished, not lost."""
        self.topics.take()
        try:
            done = self.session.close(self.now_ns())
        except RecordingError as error:
            self._say(str(error))
            return
        if done is not None:
            self._finished(done)

    def destroy_node(self) -> None:
        """Take the ears down with it."""
        self.topics.close()
        super().destroy_node()

    def _hear(self, topic: str, received_ns: int, data: bytes) -> None:
        gap = self.session.hear(topic, received_ns, data)
        if gap is not None and len(self.session.watches[topic].gaps) == 1:  # the others are counted
            self._say(f"{topic}: no frame for {gap.length_ns / 1e9:.3f} s; the episode is marked")

    def _check(self) -> None:
        try:
            done = self.session.check(self.now_ns())
        except RecordingError as error:
            self._say(str(error))
            return
        if done is not None:
            self._finished(done)
        elif self.session.is_recording and not self._doubt_said:
            doubt = self.session.disk_doubt()
            if doubt is not None:
                self._doubt_said = True
                self._say(doubt)

    def _finished(self, done: FinishedEpisode) -> str:
        sentence = f"{done.bag.name}: {done.duration_s:.1f} s, {done.messages} messages"
        if done.gaps:
            longest = max(done.gaps, key=lambda gap: gap.length_ns)
            sentence += f", {len(done.gaps)} gaps, the longest {longest.length_ns / 1e9:.3f} s on {longest.topic}"
        if done.fault is not None:
            sentence += f"; recording stopped: {done.fault}"
        self._say(sentence)
        return sentence

    def _publish_status(self) -> None:
        if not self._status.get_subscription_count():
            return
        now_ns, session = self.now_ns(), self.session
        obstacle = None if session.is_recording else session.obstacle(now_ns)
        figures: dict[str, object] = {
            "recording": session.is_recording,
            "episode": session.name,
            "episode_s": f"{(now_ns - session.started_ns) / 1e9:.1f}" if session.is_recording else "0",
            "instruction": self.instruction,
            "free_gb": f"{session.free_bytes / 1e9:.1f}",
            "backlog_mb": f"{session.backlog_bytes / 1e6:.1f}",
            "streams_mb_per_s": f"{session.bytes_per_s / 1e6:.1f}",
            "disk_mb_per_s": "" if session.disk_bytes_per_s is None else f"{session.disk_bytes_per_s / 1e6:.0f}",
        }
        for name, watch in session.watches.items():
            figures |= {
                f"{name}.rate_hz": f"{watch.rate_hz:.1f}",
                f"{name}.lag_s": f"{watch.lag_ns / 1e9:.3f}",
                f"{name}.received": watch.received,
                f"{name}.missing": watch.missing,
                f"{name}.out_of_order": watch.out_of_order,
                f"{name}.gaps": len(watch.gaps),
            }
        message = "recording" if session.is_recording else (obstacle or "ready")
        self._status.publish(
            DiagnosticStatus(
                level=DiagnosticStatus.OK if obstacle is None else DiagnosticStatus.WARN,
                name=self.get_fully_qualified_name().lstrip("/"),
                message=message,
                values=[KeyValue(key=key, value=str(value)) for key, value in figures.items()],
            )
        )


def _answer(work: Callable[[], str]) -> Callable[[Any, Any], Any]:
    def handle(_request: Any, response: Any) -> Any:  # noqa: ANN401 - a service's messages
        try:
            response.success, response.message = True, work()
        except RecordingError as error:
            response.success, response.message = False, str(error)
        return response

    return handle
