"""ROS messages to arrays, duck-typed: those of rclpy and those of rosbags take one road."""

from groot_ros.messages.arrays import read_multi_array
from groot_ros.messages.frame import ArrayFrame, Frame, array_frame
from groot_ros.messages.images import read_image
from groot_ros.messages.joints import read_joint_state, read_named_values
from groot_ros.messages.poses import read_pose
from groot_ros.messages.stamps import header_stamp_ns, stamp_ns
from groot_ros.messages.states import read_state
from groot_ros.messages.transforms import TransformTracker

__all__ = [
    "ArrayFrame",
    "Frame",
    "TransformTracker",
    "array_frame",
    "header_stamp_ns",
    "read_image",
    "read_joint_state",
    "read_multi_array",
    "read_named_values",
    "read_pose",
    "read_state",
    "stamp_ns",
]
