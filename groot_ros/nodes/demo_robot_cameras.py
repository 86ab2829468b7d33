"""Node ``demo_cameras``: the demo robot's cameras, drawn straight into the bytes that are published."""

from __future__ import annotations

import array

import numpy as np
from geometry_msgs.msg import PointStamped
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_sensor_data
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image, JointState

from groot_ros.demo.arm import Vector
from groot_ros.demo.scene import EDGE_PX, VIEWS, Frame, Scene
from groot_ros.errors import GrootError
from groot_ros.nodes.demo_robot_parts import LATCHED, TARGET_TOPIC, declare_arm, positions_by_name


class Camera:
    """One camera: its scene, its publisher and the one message whose bytes are drawn again for every frame."""

    def __init__(self, name: str, scene: Scene, publisher: Publisher[Image]) -> None:
        self.scene = scene
        self.publisher = publisher
        self.message = Image(width=scene.width, height=scene.height, encoding="rgb8", step=3 * scene.width)
        self.message.header.frame_id = f"{name}_optical_frame"
        self.message.data = array.array("B", bytes(3 * scene.width * scene.height))
        self.frame: Frame = np.frombuffer(self.message.data, np.uint8).reshape(scene.height, scene.width, 3)


class DemoCameras(Node):
    """Publishes ``<camera>/image_raw`` (rgb8) for each camera of the parameter ``cameras``."""

    def __init__(self) -> None:
        super().__init__("demo_cameras", start_parameter_services=False, enable_rosout=False)
        self.arm = declare_arm(self)
        known = ", ".join(VIEWS)
        names = self.declare_parameter(
            "cameras", list(VIEWS), ParameterDescriptor(description=f"which of {known} to publish", read_only=True)
        ).value
        if unknown := [name for name in names if name not in VIEWS]:
            msg = f"parameter cameras of demo_cameras names {unknown}: known are {known}"
            raise GrootError(msg)
        pixels = [IntegerRange(from_value=16, to_value=4096, step=1)]
        width, height = (
            self.declare_parameter(
                name,
                default,
                ParameterDescriptor(description=f"image {name}, px", integer_range=pixels, read_only=True),
            ).value
            for name, default in (("width", EDGE_PX), ("height", EDGE_PX))
        )
        rates = [FloatingPointRange(from_value=1.0, to_value=240.0)]
        rate_hz = self.declare_parameter(
            "rate_hz",
            30.0,
            ParameterDescriptor(description="frames a second", floating_point_range=rates, read_only=True),
        ).value

        self._joints: bytes | None = None
        self._seen: Vector | None = None
        # Serialised: 200 come a second, and only those that are drawn are read.
        self.create_subscription(JointState, "joint_states", self._on_joints, qos_profile_sensor_data, raw=True)
        self.create_subscription(PointStamped, TARGET_TOPIC, self._on_target, LATCHED)
        for name in names:
            publisher = self.create_publisher(Image, f"{name}/image_raw", qos_profile_sensor_data)
            camera = Camera(name, Scene(self.arm, VIEWS[name], width, height), publisher)
            self.create_timer(1.0 / rate_hz, lambda camera=camera: self._shoot(camera))

    def _on_joints(self, message: bytes) -> None:
        self._joints = message

    def _on_target(self, message: PointStamped) -> None:
        self._seen = np.array([message.point.x, message.point.y])

    def _shoot(self, camera: Camera) -> None:
        if self._joints is None or self._seen is None:
            self.get_logger().info("waiting for joint_states and target", once=True)
            return
        camera.message.header.stamp = self.get_clock().now().to_msg()
        positions = positions_by_name(deserialize_message(self._joints, JointState), self.arm.names)
        camera.scene.draw(positions, self._seen, camera.frame)
        camera.publisher.publish(camera.message)
