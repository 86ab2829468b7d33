"""Where cameras and states come from: topics, joints by name, poses, transforms, numeric fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator
from typing_extensions import Self

from groot_ros.contract.field_path import FieldPath
from groot_ros.contract.poses import PoseMap, RotationFormat, tool_rotation_matrix, whole_pose_dimensions
from groot_ros.contract.schema import FaultyKeyError, Name, Number, Part, PositiveNumber
from groot_ros.contract.units import JointMap, UnitKeys

JOINT_STATE = "sensor_msgs/msg/JointState"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"
IMAGE = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"

Reliability = Literal["best_effort", "reliable"]
MessageType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/msg/[A-Z][A-Za-z0-9]*$")]
Row = tuple[Number, Number, Number]


class CameraSource(Part):
    """A camera: its topic, and how to subscribe to it. The encoding is read from each message."""

    topic: Name
    type: (
        Literal[
            "sensor_msgs/msg/Image",
            "sensor_msgs/msg/CompressedImage",
            "foxglove_msgs/msg/CompressedVideo",
            "ffmpeg_image_transport_msgs/msg/FFMPEGPacket",
        ]
        | None
    ) = None
    qos: Reliability = "best_effort"
    rate_hz: PositiveNumber | None = None

    @property
    def message_type(self) -> str:
        """The ROS type of the topic; where it is not written, a topic named ``.../compressed`` is a CompressedImage."""
        return self.type or (COMPRESSED_IMAGE if self.topic.endswith("/compressed") else IMAGE)


class NumberKeys(UnitKeys):
    """What sources of plain numbers share.

    Attributes:
        wraps: Dimensions that jump from one end of the circle to the other; they are interpolated by the shortest arc.
        interpolation: How a value between two messages is found: ``linear``, ``nearest`` for switches and levels, or
            ``hold``, the last value before, for topics that speak only when something changes.
        qos: How to subscribe.

    """

    wraps: tuple[Name, ...] = ()
    interpolation: Literal["linear", "nearest", "hold"] = "linear"
    qos: Reliability = "best_effort"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The policy's dimension names that this source gives."""
        raise NotImplementedError

    @property
    def map(self) -> JointMap:
        """Topic values to policy values."""
        return self.joint_map(self.dimensions)

    @property
    def periods(self) -> dict[str, float]:
        """Of each dimension that wraps, the full turn in topic units."""
        return self.turns(self.wraps, self.dimensions)


class JointSource(NumberKeys):
    """Joints by name, never by position: a JointState, or any message that holds names beside values.

    ``names`` renames the joints for the policy (two arms whose joints bear the same names).
    """

    topic: Name
    type: MessageType = JOINT_STATE
    joints: tuple[Name, ...] = Field(min_length=1)
    field: FieldPath = "position"
    names_field: FieldPath | None = None
    names: tuple[Name, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_unique("joints", self.joints)
        check_names(self.names, self.joints)
        if self.type == JOINT_STATE and self.field not in {"position", "velocity", "effort"}:
            raise FaultyKeyError("field", f"found {self.field!r}", "a JointState has position, velocity and effort")
        if self.type != JOINT_STATE and "field" not in self.model_fields_set:
            raise FaultyKeyError(
                "field", "found nothing", f"say which field of {self.type} holds the values, as points[0].positions"
            )
        check_known("wraps", self.wraps, self.dimensions)
        self.joint_map(self.dimensions)
        self.turns(self.wraps, self.dimensions)
        return self

    @property
    def message_type(self) -> str:
        """The ROS type of the topic."""
        return self.type

    @property
    def joint_names_field(self) -> str:
        """The field of the message that holds the joints' names."""
        return self.names_field or ("name" if self.type == JOINT_STATE else "joint_names")

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The policy's dimension names that this source gives."""
        return self.names or self.joints


class ArraySource(NumberKeys):
    """A Float64MultiArray: a bare list of numbers, whose order is written out as ``names``."""

    topic: Name
    names: tuple[Name, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_unique("names", self.names)
        check_known("wraps", self.wraps, self.names)
        self.joint_map(self.names)
        self.turns(self.wraps, self.names)
        return self

    @property
    def message_type(self) -> str:
        """The ROS type of the topic."""
        return MULTI_ARRAY

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The policy's dimension names that this source gives."""
        return self.names


class FieldSource(NumberKeys):
    """Numbers at any paths of any message, as ``linear.x`` or ``points[0].positions[2]``."""

    topic: Name
    type: MessageType
    fields: tuple[FieldPath, ...] = Field(min_length=1)
    names: tuple[Name, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_unique("fields", self.fields)
        check_names(self.names, self.fields)
        check_known("wraps", self.wraps, self.dimensions)
        self.joint_map(self.dimensions)
        self.turns(self.wraps, self.dimensions)
        return self

    @property
    def message_type(self) -> str:
        """The ROS type of the topic."""
        return self.type

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The policy's dimension names that this source gives; the paths, where no names are written."""
        return self.names or self.fields


class RotationKeys(Part):
    """How the policy writes a pose: the layout of the orientation, another tool frame, and which dimensions it has."""

    rotation: RotationFormat = RotationFormat.QUATERNION
    tool_rotation: tuple[Row, Row, Row] | None = None
    dimensions_taken: tuple[Name, ...] | None = Field(default=None, alias="take")

    @property
    def map(self) -> PoseMap:
        """ROS pose to the policy's layout."""
        taken = self.dimensions_taken or whole_pose_dimensions(self.rotation)
        return PoseMap(self.rotation, tool_rotation_matrix(self.tool_rotation), taken)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The policy's dimension names that this source gives."""
        return self.map.taken

    @model_validator(mode="after")
    def _check_rotation(self) -> Self:
        matrix = tool_rotation_matrix(self.tool_rotation)
        if not np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-6) or np.linalg.det(matrix) < 0:
            raise FaultyKeyError("tool_rotation", f"found {matrix.tolist()}", "wanted the rows of a rotation matrix")
        if self.dimensions_taken is not None:
            check_unique("take", self.dimensions_taken)
            check_known("take", self.dimensions_taken, self.map.whole)
        return self


class PoseSource(RotationKeys):
    """A PoseStamped, or the pose at ``field`` of another message."""

    topic: Name
    type: MessageType = POSE_STAMPED
    field: FieldPath = "pose"
    qos: Reliability = "best_effort"

    @property
    def message_type(self) -> str:
        """The ROS type of the topic."""
        return self.type


class TransformSource(RotationKeys):
    """The pose of a child frame in its parent, from /tf and /tf_static."""

    tf: tuple[Name, Name]

    @property
    def message_type(self) -> str:
        """The ROS type of the topic."""
        return "tf2_msgs/msg/TFMessage"

    @property
    def topic(self) -> str:
        """The topic of moving transforms."""
        return "/tf"


SOURCE_TAGS = ("JointSource", "ArraySource", "FieldSource", "PoseSource", "TransformSource")


def _source_kind(value: Any) -> str:  # noqa: ANN401 - a mapping of the file, or a source that is made already
    if isinstance(value, Part):
        return type(value).__name__
    keys = value if isinstance(value, dict) else {}
    if "tf" in keys:
        return "TransformSource"
    if "joints" in keys:
        return "JointSource"
    if "fields" in keys:
        return "FieldSource"
    return "ArraySource" if "names" in keys else "PoseSource"


StateSource = JointSource | ArraySource | FieldSource | PoseSource | TransformSource
"""What kind of source a mapping is, is seen from its keys: joints, fields, names, tf, or else a pose."""

AnyStateSource = Annotated[
    Annotated[JointSource, Tag("JointSource")]
    | Annotated[ArraySource, Tag("ArraySource")]
    | Annotated[FieldSource, Tag("FieldSource")]
    | Annotated[PoseSource, Tag("PoseSource")]
    | Annotated[TransformSource, Tag("TransformSource")],
    Discriminator(_source_kind),
]


def check_unique(key: str, names: tuple[str, ...]) -> None:
    """Refuse a name that stands twice."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FaultyKeyError(key, f"found {', '.join(twice)} twice", "every name may stand once")


def check_known(key: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Refuse a name that is not one of ``known``."""
    for name in names:
        if name not in known:
            raise FaultyKeyError(key, f"found {name!r}", f"known here are {', '.join(known)}")


def check_names(names: tuple[str, ...] | None, values: tuple[str, ...]) -> None:
    """Refuse a list of new names that does not fit what it renames."""
    if names is None:
        return
    check_unique("names", names)
    if len(names) != len(values):
        raise FaultyKeyError(
            "names", f"found {len(names)} names", f"wanted {len(values)}, one for each of {', '.join(values)}"
        )
