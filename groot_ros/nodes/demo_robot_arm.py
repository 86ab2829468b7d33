"""Node ``demo_arm``: the demo robot's motors and its trajectory controller, and the place of the target."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PointStamped
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from groot_ros.demo.episode import Episode, draw_episode
from groot_ros.demo.simulation import DEFAULT_LAG_S, ArmSimulation
from groot_ros.demo.trajectory_controller import TrajectoryController
from groot_ros.demo.trajectory_rules import JointTrajectoryRules
from groot_ros.nodes.demo_robot_parts import LATCHED, TARGET_TOPIC, declare_arm, joint_state
from groot_ros.observation import NANOSECONDS_PER_SECOND

DIAGNOSTICS_PERIOD_S = 0.5
LONGEST_STEP_S = 0.05


class DemoArm(Node):
    """Moves the arm as ``arm_controller/joint_trajectory`` says and publishes ``joint_states``.

    Setting the parameter ``seed`` begins the episode of that seed; the service ``~/new_episode`` begins the next one.
    The target is latched on ``target``; its stamp is the beginning of the episode.
    """

    def __init__(self) -> None:
        super().__init__("demo_arm")
        self.arm = declare_arm(self)
        rate_hz = self._declare_number("rate_hz", 200.0, "joint states a second", 1.0, 1000.0)
        lag_s = self._declare_number("lag_s", DEFAULT_LAG_S, "time constant of every joint, s", 0.001, 10.0)
        self._spread_rad = self._declare_number(
            "start_spread_rad", 0.3, "largest distance a joint of an episode's start from home, rad", 0.0, 3.0
        )
        seed = self.declare_parameter("seed", 0, ParameterDescriptor(description="episode: its target and start")).value

        self._joint_states = self.create_publisher(JointState, "joint_states", 10)
        self._target = self.create_publisher(PointStamped, TARGET_TOPIC, LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(JointTrajectory, "arm_controller/joint_trajectory", self._receive, 10)
        self.create_service(Trigger, "~/new_episode", self._new_episode)
        self.add_on_set_parameters_callback(self._on_parameters)

        self.episode = draw_episode(self.arm, seed, self._spread_rad)
        self.simulation = ArmSimulation(self.arm, self.episode.start, lag_s)
        self.controller = TrajectoryController(JointTrajectoryRules(self.arm.names), self.episode.start)
        self._last_ns = self._now_ns()
        self._begin(self.episode)
        self.create_timer(1.0 / rate_hz, self._tick)
        self.create_timer(DIAGNOSTICS_PERIOD_S, self._publish_diagnostics)

    def _declare_number(self, name: str, default: float, description: str, lowest: float, highest: float) -> float:
        allowed = [FloatingPointRange(from_value=lowest, to_value=highest)]
        descriptor = ParameterDescriptor(description=description, floating_point_range=allowed, read_only=True)
        return float(self.declare_parameter(name, default, descriptor).value)

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _begin(self, episode: Episode) -> None:
        self.episode = episode
        self.simulation.reset(episode.start)
        self.controller.hold(episode.start)
        message = PointStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = "base_link"
        message.point.x, message.point.y = (float(value) for value in episode.target)
        self._target.publish(message)
        self.get_logger().info(
            f"episode {episode.seed}: target at x {message.point.x:.3f} m, y {message.point.y:.3f} m"
        )

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == "seed":
                if parameter.value < 0:
                    return SetParametersResult(successful=False, reason=f"seed is {parameter.value}: give 0 or above")
                self._begin(draw_episode(self.arm, parameter.value, self._spread_rad))
        return SetParametersResult(successful=True)

    def _new_episode(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        seed = self.episode.seed + 1
        self.set_parameters([Parameter("seed", value=seed)])
        response.success, response.message = True, f"episode {seed}"
        return response

    def _receive(self, message: JointTrajectory) -> None:
        known = set(self.controller.rejected)
        rejection = self.controller.receive(message, self._now_ns())
        if rejection is not None and rejection.reason not in known:
            self.get_logger().warning(f"trajectory rejected ({rejection.reason.value}): {rejection.sentence}")

    def _tick(self) -> None:
        now = self.get_clock().now()
        elapsed_s = (now.nanoseconds - self._last_ns) / NANOSECONDS_PER_SECOND
        self._last_ns = now.nanoseconds
        command, _ = self.controller.command(now.nanoseconds)
        self.simulation.step(command, min(elapsed_s, LONGEST_STEP_S))
        positions, velocities = self.simulation.positions, self.simulation.velocities
        self._joint_states.publish(joint_state(self.arm.names, positions, velocities, now))

    def _publish_diagnostics(self) -> None:
        controller, last = self.controller, self.controller.last_rejection
        values = {
            "episode": self.episode.seed,
            "accepted": controller.accepted,
            "cancelled": controller.cancelled,
            "rejected": sum(controller.rejected.values()),
            **{f"rejected: {reason.value}": count for reason, count in controller.rejected.items()},
            "last rejection": last.sentence if last else "",
            "steps beyond position limits": self.simulation.position_limited,
            "steps at the speed limit": self.simulation.speed_limited,
        }
        status = DiagnosticStatus(name="demo_robot: arm_controller", hardware_id="demo_robot")
        status.level = DiagnosticStatus.WARN if last else DiagnosticStatus.OK
        status.message = f"rejected: {last.reason.value}" if last else "following trajectories"
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)
