"""Start groot_policy with a robot contract and a checkpoint, bring it to active, and let the watchdog look after it.

    ros2 launch groot_ros groot.launch.py checkpoint:=~/models/my_robot contract:=my_robot.yaml
    ros2 launch groot_ros groot.launch.py ... dry_run:=false        then call /groot_policy/enable

It is a dry run unless dry_run:=false is given. The transport profile is set for everything that this launch file, and
one that includes it, start from here on; camera drivers started elsewhere need it in their own environment.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution, PythonExpression
from launch_ros.actions import LifecycleNode, Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

PROFILE_VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")  # kilted and later; older

# Argument: type of the node's parameter of the same name, default (None: must be given), description.
PARAMETERS = {
    "checkpoint": (str, None, "GR00T N1.7 checkpoint: a folder"),
    "contract": (str, None, "the robot contract, a YAML file"),
    "embodiment_tag": (str, "", "embodiment of the checkpoint; empty: the contract's"),
    "device": (str, "auto", "auto, cpu, cuda or cuda:N"),
    "dry_run": (bool, "true", "compute and publish everything, but send no command to the robot"),
    "auto_enable": (bool, "false", "enable motion once active, without a call of ~/enable; needs dry_run:=false"),
    "use_sim_time": (bool, "false", "take the time from /clock"),
}


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (_, default, description) in PARAMETERS.items()
    ]
    arguments += [
        DeclareLaunchArgument("namespace", default_value="", description="namespace of the node and its topics"),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error or fatal"),
        DeclareLaunchArgument(
            "transport_profile",
            default_value=PathJoinSubstitution([FindPackageShare("groot_ros"), "config", "fastdds_shared_memory.xml"]),
            description="Fast DDS profile with room for images in shared memory; empty: the environment's own",
        ),
    ]
    profile = [
        SetEnvironmentVariable(
            variable,
            LaunchConfiguration("transport_profile"),
            condition=IfCondition(PythonExpression(["'", LaunchConfiguration("transport_profile"), "' != ''"])),
        )
        for variable in PROFILE_VARIABLES
    ]
    parameters = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind) for name, (kind, _, _) in PARAMETERS.items()
    }
    policy = LifecycleNode(
        package="groot_ros",
        executable="policy",
        name="groot_policy",
        namespace=LaunchConfiguration("namespace"),
        parameters=[{**parameters, "autostart": True}],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="screen",
        emulate_tty=True,
    )
    watchdog = Node(
        package="groot_ros",
        executable="watchdog",
        name="groot_watchdog",
        namespace=LaunchConfiguration("namespace"),
        parameters=[{name: parameters[name] for name in ("contract", "use_sim_time")}],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="screen",
        emulate_tty=True,
    )
    return LaunchDescription([*arguments, *profile, policy, watchdog])
