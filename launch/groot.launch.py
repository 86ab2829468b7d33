"""Start groot_policy with a robot contract and a checkpoint, bring it to active, and let the watchdog look after it.

    ros2 launch groot_ros groot.launch.py checkpoint:=~/models/my_robot contract:=my_robot.yaml
    ros2 launch groot_ros groot.launch.py ... dry_run:=false        then call /groot_policy/enable
    ros2 launch groot_ros groot.launch.py checkpoint:=... robots:="left=left.yaml right=right.yaml"

It is a dry run unless dry_run:=false is given. With `robots` one process serves several of them, each in its namespace
and with a watchdog of its own. The transport profile is set for everything that this launch file, and one that includes
it, start from here on; camera drivers started elsewhere need it in their own environment.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution, PythonExpression
from launch_ros.actions import LifecycleNode, Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

PROFILE_VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")  # kilted and later; older

# Argument: type of the node's parameter of the same name, default (None: must be given), description.
PARAMETERS = {
    "checkpoint": (str, None, "GR00T N1.7 checkpoint: a folder"),
    "contract": (str, "", "the robot contract, a YAML file; with robots: of those that name none"),
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
        DeclareLaunchArgument(
            "robots", default_value="", description="robots that share the policy: namespace or namespace=contract.yaml"
        ),
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
    return LaunchDescription([*arguments, *profile, OpaqueFunction(function=nodes)])


def nodes(context):
    """The policy and its watchdogs."""
    robots = LaunchConfiguration("robots").perform(context).split()
    if robots and LaunchConfiguration("namespace").perform(context):
        msg = "namespace and robots are both given; write whole namespaces in robots, as lab/left"
        raise RuntimeError(msg)
    if robots:
        return [policy_for(robots), *[watchdog(*robot.partition("=")[::2]) for robot in robots]]
    policy = LifecycleNode(
        name="groot_policy",
        namespace=LaunchConfiguration("namespace"),
        executable="policy",
        **common(policy_parameters()),
    )
    return [policy, watchdog(LaunchConfiguration("namespace"))]


def policy_for(robots):
    """One process for several robots; without a name, so that the parameters are those of every node in it."""
    return Node(executable="policy", arguments=["--robots", *robots], **common(policy_parameters()))


def watchdog(namespace, contract=""):
    """The watchdog of one robot."""
    parameters = {name: parameter(name) for name in ("contract", "use_sim_time")}
    if contract:
        parameters["contract"] = contract
    return Node(name="groot_watchdog", namespace=namespace, executable="watchdog", **common(parameters))


def policy_parameters():
    return {**{name: parameter(name) for name in PARAMETERS}, "autostart": True}


def parameter(name):
    return ParameterValue(LaunchConfiguration(name), value_type=PARAMETERS[name][0])


def common(parameters):
    return {
        "package": "groot_ros",
        "parameters": [parameters],
        "ros_arguments": ["--log-level", LaunchConfiguration("log_level")],
        "output": "screen",
        "emulate_tty": True,
    }
