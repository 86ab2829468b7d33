"""A recorder without ROS that records one short episode after the other until it is killed."""

import itertools
import sys
import time
from pathlib import Path

from support.robot_bags import INSTRUCTION, START_NS, bag_contract, robot, serialized

from groot_ros.recording import RecordingSession, recorded_topics

topics = {f"/{topic.topic}": topic for topic in recorded_topics(bag_contract())}
session = RecordingSession(Path(sys.argv[1]), topics, max_gap_ns=75_000_000, least_free_bytes=0)
warm_up = list(serialized(robot(0.3)))
for topic, _, at_ns, data in warm_up:
    session.hear(topic, at_ns, data)
episode = list(serialized(robot(1.5, size=(240, 320))))
print("recording", flush=True)
now_ns = at_ns
for later_ns in itertools.count(300_000_000, 1_500_000_000):  # the clock never goes back
    session.start(now_ns, INSTRUCTION)
    begun_s = time.monotonic()
    for topic, _, at_ns, data in episode:
        time.sleep(max(0.0, begun_s + (at_ns - START_NS) / 1e9 - time.monotonic()))
        now_ns = at_ns + later_ns
        session.hear(topic, now_ns, data)
    session.stop(now_ns)
