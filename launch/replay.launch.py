"""Play a bag to the policy node as if it were its robot, in a dry run, and keep the chunks that it answers with.

    ros2 launch groot_ros replay.launch.py bag:=my_bag checkpoint:=~/models/my_robot contract:=my_robot.yaml

Everything ends when the bag does. Then: ros2 run groot_ros evaluate BAG --contract C --chunks chunks.parquet --output R
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, IncludeLaunchDescription, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution, PythonExpression
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

ARGUMENTS = {
    "bag": (None, "the bag: a directory with metadata.yaml, .mcap or .db3"),
    "checkpoint": (None, "GR00T N1.7 checkpoint: a folder"),
    "contract": (None, "the robot contract, a YAML file"),
    "chunks": ("chunks.parquet", "file for the chunks that the node sends, for evaluate --chunks"),
    "rate": ("1.0", "how many times faster than recorded"),
    "lock_step": ("false", "wait for the node after each message: nothing is lost, and the times mean nothing"),
}


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in ARGUMENTS.items()
    ]
    policy = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(
            PathJoinSubstitution([FindPackageShare("groot_ros"), "launch", "groot.launch.py"])
        ),
        launch_arguments={
            "checkpoint": LaunchConfiguration("checkpoint"),
            "contract": LaunchConfiguration("contract"),
            "dry_run": "true",
            "use_sim_time": "true",
        }.items(),
    )
    lock_step = PythonExpression(
        ["'--lock-step' if '", LaunchConfiguration("lock_step"), "' == 'true' else '--rate=1'"]
    )
    player = Node(
        package="groot_ros",
        executable="play",
        arguments=[
            LaunchConfiguration("bag"),
            ["--contract=", LaunchConfiguration("contract")],
            ["--record=", LaunchConfiguration("chunks")],
            lock_step,
            ["--rate=", LaunchConfiguration("rate")],
        ],
        output="screen",
        emulate_tty=True,
    )
    end = RegisterEventHandler(OnProcessExit(target_action=player, on_exit=[EmitEvent(event=Shutdown())]))
    return LaunchDescription([*arguments, policy, player, end])
