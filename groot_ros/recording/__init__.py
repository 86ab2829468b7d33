"""Recording without rclpy: episodes as rosbag2 files that survive crashes, the health of streams, and recovery."""

from groot_ros.recording.episode_file import ChannelCount, EpisodeFile
from groot_ros.recording.recovery import recover
from groot_ros.recording.session import RecordingSession
from groot_ros.recording.topics import RecordedTopic, recorded_topics

__all__ = ["ChannelCount", "EpisodeFile", "RecordedTopic", "RecordingSession", "recorded_topics", "recover"]
