"""From streams to one observation: which frames, which state, and why there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from support.contracts import small_contract

from groot_ros.alignment import Aligner, NotReady, Reason, TurningBuffers
from groot_ros.contract import Contract
from groot_ros.messages import array_frame, read_image
from groot_ros.messages.compressed import CompressedFrame
from groot_ros.observation import Observation

MS = 1_000_000
START = 1_000_000 * MS
PLAIN = (", policy_unit: deg", "")


def picture(number: int, size=(2, 3)):
    return array_frame(np.full((*size, 3), number % 256, np.uint8), f"frame {number}")


class Robot:
    """Feeds an aligner; all times are milliseconds after the start, and a message arrives when it is stamped."""

    def __init__(self, contract: Contract | None = None, video=(0,), state=(0,), **options) -> None:
        self.aligner = Aligner(contract or small_contract(PLAIN), video, state, **options)

    def image(self, camera: str, at: float, number: int | None = None, *, received: float | None = None, stamp=None):
        stamp_ns = START + round(at * MS) if stamp is None else stamp
        frame = picture(round(at) if number is None else number)
        return self.aligner.add_image(camera, stamp_ns, frame, self.ns(at if received is None else received))

    def images(self, at: float) -> None:
        self.image("front", at)
        self.image("wrist", at)

    def joints(self, at: float, values=None, *, received: float | None = None, stamp=None):
        stamp_ns = START + round(at * MS) if stamp is None else stamp
        values = np.array([at, -at] if values is None else values, np.float64)
        return self.aligner.add_state("arm", 0, stamp_ns, values, self.ns(at if received is None else received))

    def run(self, start: float, end: float, *, joints_every: float = 5, images_every: float = 100 / 3) -> None:
        """Cameras and joints together, in the order of time."""
        events = [(at, self.joints) for at in np.arange(start, end, joints_every)]
        events += [(at, self.images) for at in np.arange(start, end, images_every)]
        for at, feed in sorted(events, key=lambda event: event[0]):
            feed(float(at))

    def ns(self, at: float) -> int:
        return START + round(at * MS)

    def look(self, now: float) -> Observation | NotReady:
        return self.aligner.observation(self.ns(now), "wave")

    def see(self, now: float) -> Observation:
        found = self.look(now)
        assert isinstance(found, Observation), found
        return found

    def why_not(self, now: float) -> NotReady:
        found = self.look(now)
        assert isinstance(found, NotReady), "there is an observation"
        return found


def ready_robot(**options) -> Robot:
    robot = Robot(**options)
    robot.joints(0)
    robot.images(10)
    robot.joints(20)
    return robot


def test_frames_and_states_of_one_instant_make_an_observation():
    observation = ready_robot().see(25)
    assert observation.images["front"].shape == (1, 2, 3, 3)
    assert observation.images["front"].dtype == np.uint8
    np.testing.assert_array_equal(observation.state["arm"], np.array([[10, -10]], np.float32))
    assert observation.state["arm"].dtype == np.float32
    assert observation.instruction == "wave"
    assert observation.image_stamps_ns == {"front": (START + 10 * MS,), "wrist": (START + 10 * MS,)}


def test_the_state_is_in_the_units_of_the_policy():
    observation = ready_robot(contract=small_contract()).see(25)
    np.testing.assert_allclose(observation.state["arm"], np.rad2deg([[10.0, -10.0]]), rtol=1e-6)


def test_the_stamp_is_that_of_the_oldest_current_frame():
    robot = ready_robot()
    robot.image("wrist", 15)
    robot.image("front", 18)
    assert robot.see(25).stamp_ns == START + 15 * MS


def test_an_rgb8_frame_is_not_copied():
    robot = ready_robot()
    robot.aligner.add_image("front", robot.ns(15), frame := picture(1), robot.ns(15))
    assert np.shares_memory(robot.see(25).images["front"], frame.rgb())


def test_the_reference_is_the_newest_frame_that_all_others_meet():
    robot = ready_robot()
    robot.image("front", 60)  # the wrist camera is 50 ms behind: beyond the tolerance of 30 ms
    robot.joints(65)
    observation = robot.see(66)
    assert observation.image_stamps_ns["front"] == (START + 10 * MS,)
    robot.image("wrist", 61)
    assert robot.see(66).image_stamps_ns == {"front": (START + 60 * MS,), "wrist": (START + 61 * MS,)}


def test_other_cameras_give_their_nearest_frame():
    robot = Robot()
    robot.joints(0)
    for at in (5, 20, 38):
        robot.image("wrist", at)
    robot.image("front", 30)
    robot.joints(40)
    assert robot.see(41).image_stamps_ns["wrist"] == (START + 38 * MS,)


def test_a_frame_waits_for_a_state_that_is_as_new():
    robot = ready_robot()
    robot.images(30)
    assert robot.see(31).image_stamps_ns["front"] == (START + 10 * MS,)
    robot.joints(32)
    np.testing.assert_allclose(robot.see(33).state["arm"], [[30, -30]])


@given(st.floats(0, 1), st.floats(-5, 5), st.floats(-5, 5))
@settings(max_examples=50, deadline=None)
def test_numbers_are_interpolated_straight(share, first, second):
    robot = Robot()
    robot.joints(0, [first, 0])
    at = 100 * share
    robot.images(at)
    robot.joints(100, [second, 1])
    share = round(at * MS) / (100 * MS)
    wanted = first + share * (second - first)
    np.testing.assert_allclose(robot.see(101).state["arm"], [[wanted, share]], rtol=1e-6, atol=1e-6)


@given(st.floats(-np.pi, np.pi), st.floats(-1, 1), st.sampled_from([0.25, 0.5, 0.75]))
@settings(max_examples=50, deadline=None)
def test_an_angle_that_wraps_takes_the_shortest_arc(start, turn, share):
    robot = Robot(small_contract(("policy_unit: deg", "wraps: [a]")))
    end = (start + turn + np.pi) % (2 * np.pi) - np.pi
    robot.joints(0, [start, 0])
    robot.images(100 * share)
    robot.joints(100, [end, 0])
    found = float(robot.see(101).state["arm"][0, 0])
    distance = (found - start - share * turn + np.pi) % (2 * np.pi) - np.pi
    assert abs(distance) < 1e-5
    assert abs(found) < np.pi + 0.51  # on the topic's side of the circle, but for half the jump between two samples


def test_a_joint_that_does_not_wrap_goes_the_long_way():
    robot = Robot()
    robot.joints(0, [3.0, 0])
    robot.images(50)
    robot.joints(100, [-3.0, 0])
    assert robot.see(101).state["arm"][0, 0] == 0.0


def test_a_switch_takes_the_nearest_sample():
    robot = Robot(small_contract(("policy_unit: deg", "interpolation: nearest")))
    robot.joints(0, [0, 0])
    robot.images(60)
    robot.joints(100, [1, 1])
    np.testing.assert_array_equal(robot.see(101).state["arm"], [[1, 1]])


RARE = "alignment: {streams: {arm: {max_age_s: none}}}\n"


def test_a_topic_that_speaks_only_of_changes_holds_its_last_value():
    robot = Robot(small_contract(("policy_unit: deg", "interpolation: hold"), more=RARE))
    robot.joints(0, [0, 0])
    robot.joints(5000, [1, 1])
    robot.images(4990)
    np.testing.assert_array_equal(robot.see(5001).state["arm"], [[0, 0]])
    robot.images(9000)
    np.testing.assert_array_equal(robot.see(9001).state["arm"], [[1, 1]])
    robot.aligner.reset()
    robot.images(9100)
    np.testing.assert_array_equal(robot.see(9101).state["arm"], [[1, 1]])


def test_a_held_value_ages_unless_the_contract_says_otherwise():
    robot = Robot(small_contract(("policy_unit: deg", "interpolation: hold")))
    robot.joints(0)
    robot.images(150)
    robot.see(150)
    robot.images(300)
    assert robot.why_not(300).reason is Reason.STALE


def test_a_stream_that_speaks_rarely_may_be_older():
    more = "alignment: {streams: {arm: {max_age_s: 0.5}}}\n"
    robot = Robot(small_contract(PLAIN, more=more))
    robot.joints(0)
    robot.images(150)
    robot.joints(300)
    np.testing.assert_allclose(robot.see(320).state["arm"], [[150, -150]])


POSE = (
    ("{topic: joint_states, joints: [a, b], policy_unit: deg}", "{topic: tool, rotation: axis_angle}"),
    ("meaning: position", "meaning: pose"),
    ("type: joint_trajectory, topic", "type: pose, frame: base, topic"),
)


def test_poses_turn_by_the_shortest_way():
    robot = Robot(small_contract(*POSE))
    robot.joints = lambda at, values: robot.aligner.add_state("arm", 0, robot.ns(at), values, robot.ns(at))
    robot.joints(0, np.array([0.0, 0, 0, *Rotation.from_rotvec([0, 0, 0.2]).as_quat()]))
    robot.images(25)
    robot.joints(100, np.array([1.0, 0, 0, *-Rotation.from_rotvec([0, 0, 0.6]).as_quat()]))  # -q is the same turn
    np.testing.assert_allclose(robot.see(101).state["arm"], [[0.25, 0, 0, 0, 0, 0.3]], atol=1e-6)


def test_two_sources_of_one_group_are_joined_in_order():
    sources = "[{topic: left, joints: [a]}, {topic: right, joints: [b]}]"
    robot = Robot(small_contract(("{topic: joint_states, joints: [a, b], policy_unit: deg}", sources)))
    for at in (0, 20):
        robot.aligner.add_state("arm", 1, robot.ns(at), np.array([2.0]), robot.ns(at))
    robot.images(10)
    assert robot.why_not(21).stream == "state.arm"
    for at in (0, 20):
        robot.aligner.add_state("arm", 0, robot.ns(at), np.array([1.0]), robot.ns(21))
    np.testing.assert_array_equal(robot.see(21).state["arm"], [[1, 2]])
    assert set(robot.aligner.health) == {"video.front", "video.wrist", "state.arm", "state.arm[1]"}


def test_a_group_without_sources_has_width_0():
    robot = ready_robot(contract=small_contract(PLAIN, ("state:\n", "state:\n  empty: []\n")))
    assert robot.see(25).state["empty"].shape == (1, 0)


# History


def test_history_is_taken_in_time_whatever_the_rate_of_the_camera():
    for every in (100 / 3, 20.0, 100 / 6):
        robot = Robot(video=(-15, 0))
        robot.run(0, 1500, images_every=every)
        stamps = robot.see(1500).image_stamps_ns["front"]
        assert abs(stamps[1] - stamps[0] - 500 * MS) <= every * MS / 2


def test_history_that_is_not_there_yet_repeats_the_first_frame():
    robot = Robot(video=(-15, 0))
    robot.run(1000, 1210)
    observation = robot.see(1205)
    assert observation.image_stamps_ns["front"][0] == START + 1000 * MS
    np.testing.assert_array_equal(observation.images["front"][0], picture(1000).rgb())
    np.testing.assert_array_equal(observation.images["front"][1], picture(1200).rgb())


def test_a_reset_begins_the_history_anew():
    robot = Robot(video=(-15, 0))
    robot.run(0, 1000)
    robot.aligner.reset()
    assert robot.why_not(1000).reason is Reason.MISSING
    robot.run(1000, 1100)
    assert robot.see(1100).image_stamps_ns["front"][0] == START + 1000 * MS


def test_frames_lost_within_the_history_are_named():
    robot = Robot(video=(-15, 0))
    robot.run(0, 500)
    robot.run(700, 1100)
    found = robot.why_not(1100)
    assert (found.reason, found.stream) == (Reason.HISTORY_GAP, "video.front")
    assert "no frame on front/image_raw is there for 0.500 s ago" in found.sentence


def test_a_camera_that_changes_its_size_within_the_history_is_named():
    robot = Robot(video=(-1, 0))
    robot.run(0, 200)
    robot.aligner.add_image("front", robot.ns(200), picture(1, size=(4, 6)), robot.ns(200))
    robot.aligner.add_image("wrist", robot.ns(200), picture(1), robot.ns(200))
    robot.joints(201)
    found = robot.why_not(202)
    assert found.reason is Reason.SIZE_CHANGED
    assert "changed their size within the history: 3x2 and 6x4" in found.sentence


def test_a_history_of_states_is_interpolated_too():
    robot = Robot(state=(-3, 0))
    robot.run(0, 500)
    observation = robot.see(500)
    (stamp,) = observation.image_stamps_ns["front"]
    at = (stamp - START) / MS
    np.testing.assert_allclose(observation.state["arm"][:, 0], [at - 100, at], atol=1e-3)


def test_a_history_goes_into_the_buffer_that_is_provided():
    robot = Robot(video=(-3, 0))
    robot.run(0, 500)
    buffers = {camera: np.zeros((2, 2, 3, 3), np.uint8) for camera in ("front", "wrist")}
    observation = robot.aligner.observation(robot.ns(500), "wave", lambda camera, shape: buffers[camera].reshape(shape))
    assert np.shares_memory(observation.images["front"], buffers["front"])
    assert buffers["front"].any()


def test_buffers_that_take_turns_keep_the_observations_in_use():
    robot, buffers, kept = Robot(video=(-3, 0)), TurningBuffers(turns=3), []
    for start in range(0, 2000, 200):
        robot.run(start, start + 200)
        observation = robot.aligner.observation(robot.ns(start + 200), "wave", buffers)
        assert isinstance(observation, Observation)
        kept = [*kept, (observation.images["front"], observation.images["front"].copy())][-3:]
        assert all((now == then).all() for now, then in kept)
    assert len({id(buffers("front", (2, 2, 3, 3))) for _ in range(10)}) == 3
    assert buffers("front", (2, 4, 6, 3)).shape == (2, 4, 6, 3)


def test_a_history_that_does_not_end_now_is_refused():
    with pytest.raises(ValueError, match=r"video_history is \(-15, -1\), wanted rows up to the present"):
        Robot(video=(-15, -1))


# Why there is no observation


def test_a_stream_that_never_came_is_named_with_its_topic():
    robot = Robot()
    robot.joints(0)
    robot.image("front", 0)
    found = robot.why_not(1)
    assert (found.reason, found.stream) == (Reason.MISSING, "video.wrist")
    assert found.sentence == "video.wrist: no message has come yet on wrist/image_raw"


@pytest.mark.parametrize(("stopped", "stream"), [("images", "video.front"), ("joints", "state.arm")])
def test_a_stream_that_stops_is_named_within_max_age(stopped, stream):
    robot = Robot()
    robot.run(0, 1000)
    robot.see(1000)
    robot.run(1000, 1300, **{f"{stopped}_every": 1e9})
    found = robot.why_not(1300)
    assert (found.reason, found.stream) == (Reason.STALE, stream)
    assert "s old, allowed are 0.200 s" in found.sentence


def test_a_stamp_of_zero_is_refused_and_named():
    robot = ready_robot()
    robot.aligner.reset()
    assert robot.image("front", 30, stamp=0) is False
    found = robot.why_not(31)
    assert (found.reason, found.stream) == (Reason.ZERO_STAMP, "video.front")
    assert (
        "messages on front/image_raw have a stamp of zero; let the driver fill it in, or write stamp: receipt"
        in found.sentence
    )
    assert robot.aligner.health["video.front"].zero_stamps == 1


def test_a_stream_by_receipt_needs_no_stamp():
    robot = Robot(small_contract(PLAIN, more="alignment: {streams: {front: {stamp: receipt}}}\n"))
    robot.joints(0)
    robot.image("wrist", 10)
    robot.image("front", 10, stamp=0)
    robot.joints(20)
    assert robot.see(21).stamp_ns == START + 10 * MS


def test_a_message_without_a_header_counts_by_its_receipt():
    robot = Robot()
    for at in (0, 20):
        robot.aligner.add_state("arm", 0, None, np.array([at, at]), robot.ns(at))
    robot.images(10)
    np.testing.assert_array_equal(robot.see(21).state["arm"], [[10, 10]])


def test_a_header_that_is_demanded_must_be_there():
    robot = Robot(small_contract(PLAIN, more="alignment: {streams: {arm: {stamp: header}}}\n"))
    robot.images(0)
    robot.aligner.add_state("arm", 0, None, np.array([1.0, 1.0]), robot.ns(0))
    found = robot.why_not(1)
    assert found.reason is Reason.ZERO_STAMP
    assert "messages on joint_states have no header" in found.sentence


def test_stamps_in_the_future_are_accepted_up_to_the_limit_and_reported():
    robot = ready_robot()
    robot.image("front", 30, received=11)
    assert robot.aligner.health["video.front"].longest_lead_ns == 19 * MS
    assert robot.aligner.health["video.front"].future_stamps == 0


def test_stamps_beyond_the_future_limit_are_refused_and_named():
    robot = Robot()
    robot.joints(0)
    assert robot.image("front", 100, received=50) is False
    found = robot.why_not(51)
    assert (found.reason, found.stream) == (Reason.FUTURE_STAMP, "video.front")
    assert "is stamped 0.050 s ahead of now, allowed are 0.020 s; synchronise the clocks" in found.sentence


def test_an_offset_moves_the_stamps_of_one_stream():
    robot = Robot(small_contract(PLAIN, more="alignment: {streams: {wrist: {offset_s: -0.05}}}\n"))
    robot.joints(0)
    robot.image("front", 10)
    robot.image("wrist", 60)
    robot.joints(70)
    assert robot.see(71).image_stamps_ns == {"front": (START + 10 * MS,), "wrist": (START + 10 * MS,)}


def test_cameras_that_never_meet_are_named_with_the_distance():
    robot = Robot()
    robot.joints(0)
    robot.image("front", 10)
    robot.image("wrist", 90)
    robot.joints(100)
    found = robot.why_not(101)
    assert (found.reason, found.stream) == (Reason.UNMATCHED, "video.wrist")
    assert "the nearest is 0.080 s away, allowed are 0.030 s (alignment.tolerance_s)" in found.sentence


def test_a_gap_in_the_states_is_not_bridged():
    robot = Robot()
    robot.joints(0)
    robot.images(150)
    robot.joints(290)
    found = robot.why_not(300)
    assert (found.reason, found.stream) == (Reason.UNMATCHED, "state.arm")
    assert "it lies in a gap of 0.290 s between two samples, allowed are 0.200 s" in found.sentence


def test_a_clock_that_jumps_back_forgets_everything_once_and_goes_on():
    robot = Robot()
    robot.run(5000, 6000)
    robot.see(6000)
    found = robot.why_not(0)
    assert (found.reason, found.stream) == (Reason.CLOCK_JUMPED_BACK, "clock")
    assert "time went back by 6.000 s" in found.sentence
    assert robot.why_not(1).reason is Reason.MISSING
    robot.run(10, 200)
    assert robot.see(200).stamp_ns > START


def test_a_clock_that_jumps_back_is_seen_by_the_messages_too():
    robot = Robot()
    robot.run(5000, 6000)
    robot.run(0, 200)
    assert robot.why_not(200).reason is Reason.CLOCK_JUMPED_BACK
    assert robot.see(200).stamp_ns < START + 200 * MS


def test_two_publishers_on_one_topic_are_named():
    robot = Robot()
    for at in range(0, 500, 10):
        robot.joints(at)
        robot.joints(at - 35, received=at)  # the clock of the second robot is behind
        if at % 30 == 0:
            robot.images(at)
    found = robot.why_not(500)
    assert (found.reason, found.stream) == (Reason.OUT_OF_ORDER, "state.arm")
    assert "is there a second publisher on this topic?" in found.sentence
    assert robot.aligner.health["state.arm"].late_stamps >= 45


def test_a_driver_that_repeats_its_stamps_is_named():
    robot = Robot()
    for at in range(0, 500, 10):
        robot.joints(at)
        robot.joints(at)
        robot.images(at)
    found = robot.why_not(495)
    assert found.reason is Reason.OUT_OF_ORDER
    assert robot.aligner.health["state.arm"].duplicate_stamps == 50


def test_one_late_message_is_left_out_and_counted():
    robot = Robot()
    robot.run(0, 500)
    robot.joints(470, [99, 99], received=500)
    assert robot.see(500).state["arm"][0, 0] > 460
    assert robot.aligner.health["state.arm"].late_stamps == 1


def test_a_stream_whose_own_clock_goes_back_for_good_is_taken_up_again():
    robot = Robot(small_contract(PLAIN, ("limits: none", "limits: none\nalignment: {tolerance_s: 0.03}")))
    robot.run(0, 1000)
    for at in range(1000, 2400, 10):
        robot.image("wrist", at)
        robot.image("front", at)
        robot.joints(at - 400, received=at)
    assert robot.aligner.health["state.arm"].clock_jumps == 1
    assert robot.aligner.health["state.arm"].newest_stamp_ns == robot.ns(1990)


def test_a_message_that_cannot_be_read_is_the_reason():
    robot = ready_robot()
    robot.aligner.reset()
    robot.aligner.refuse("video.front", "front: the data is truncated", robot.ns(30))
    found = robot.why_not(31)
    assert (found.reason, found.stream, found.sentence) == (
        Reason.BAD_MESSAGE,
        "video.front",
        "front: the data is truncated",
    )


def test_a_frame_that_cannot_be_decoded_is_the_reason():
    robot = ready_robot()
    damaged = CompressedFrame(
        height=2, width=3, where="front", data=np.frombuffer(b"\xff\xd8nothing\xff\xd9", np.uint8)
    )
    robot.aligner.add_image("front", robot.ns(15), damaged, robot.ns(15))
    found = robot.why_not(25)
    assert (found.reason, found.stream) == (Reason.BAD_MESSAGE, "video.front")
    assert "cannot be decoded; it is damaged" in found.sentence


def test_a_state_that_is_not_finite_never_counts():
    robot = Robot()
    assert robot.joints(0, [np.nan, 0]) is False
    robot.images(0)
    assert robot.why_not(1).reason is Reason.BAD_MESSAGE
    assert "a state must be finite" in robot.why_not(1).sentence


def test_a_state_of_another_width_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match=r"state\.arm: found values of shape \(3,\), wanted \(2,\)"):
        Robot().joints(0, [1, 2, 3])


def test_reasons_are_stable_words():
    assert {reason.value for reason in Reason} == {
        "clock_jumped_back", "missing", "stale", "zero_stamp", "future_stamp", "out_of_order", "bad_message",
        "unmatched", "history_gap", "size_changed",
    }  # fmt: skip


# Commands of a recording


def test_commands_are_aligned_as_states_are():
    contract = small_contract(more="record: {arm: {topic: leader, joints: [a, b], policy_unit: deg}}\n")
    robot = Robot(contract, with_commands=True)
    robot.joints(0)
    robot.images(10)
    robot.joints(20)
    assert robot.why_not(21).stream == "action.arm"
    for at in (0, 20):
        robot.aligner.add_command("arm", 0, robot.ns(at), np.array([at, 0.0]), robot.ns(21))
    reference = robot.aligner.reference(robot.ns(21))
    assert reference == robot.ns(10)
    np.testing.assert_allclose(robot.aligner.commands_at(reference)["arm"], np.rad2deg([10.0, 0.0]))


@pytest.mark.parametrize(
    "arm",
    [
        "{topic: leader, joints: [a, b], policy_unit: deg}",
        "{topic: leader, joints: [a, b], wraps: [b]}",
        "{topic: leader, joints: [a, b], interpolation: nearest}",
        "{topic: leader, joints: [a, b], interpolation: hold}",
    ],
)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.lists(st.integers(0, 2000), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_commands_at_many_times_are_those_at_each_time(arm, gaps, times):
    robot = Robot(small_contract(more=f"record: {{arm: {arm}}}\n"), with_commands=True)
    stamps = np.cumsum(gaps).tolist()
    for at in stamps:
        robot.aligner.add_command("arm", 0, robot.ns(at), np.array([0.1 * at, at % 6.0]), robot.ns(at))
    times_ns = np.array(sorted(robot.ns(at) for at in [*times, *stamps]), np.int64)
    values, known = robot.aligner.commands_over(times_ns)
    for row, time_ns in enumerate(times_ns.tolist()):
        one = robot.aligner.commands_at(time_ns)
        assert known[row] == (not isinstance(one, NotReady))
        if known[row]:
            assert values["arm"][row].tobytes() == one["arm"].tobytes()
        else:
            assert np.isnan(values["arm"][row]).all()


# The same from live messages, a bag and rows


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_an_observation_depends_on_the_streams_and_not_on_when_they_came(data):
    """Whatever the order in which streams are heard, the observation for a reference stamp is the same."""
    events = [("joints", at) for at in range(0, 400, 7)]
    events += [("front", at) for at in range(0, 400, 33)] + [("wrist", at + 4) for at in range(0, 400, 33)]
    delays = data.draw(st.fixed_dictionaries({name: st.integers(0, 90) for name in ("joints", "front", "wrist")}))
    late, plain = Robot(video=(-5, 0)), Robot(video=(-5, 0))
    for robot, delay in ((plain, dict.fromkeys(delays, 0)), (late, delays)):
        for name, at in sorted(events, key=lambda event: event[1] + delay[event[0]]):
            received = at + delay[name]
            if name == "joints":
                robot.joints(at, received=received)
            else:
                robot.image(name, at, received=received)
    first = plain.aligner.observation_at(plain.ns(330), "wave")
    second = late.aligner.observation_at(late.ns(330), "wave")
    assert isinstance(first, Observation)
    assert isinstance(second, Observation)
    assert first.image_stamps_ns == second.image_stamps_ns
    np.testing.assert_array_equal(first.state["arm"], second.state["arm"])
    for camera in first.images:
        np.testing.assert_array_equal(first.images[camera], second.images[camera])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_whatever_the_clocks_do_an_observation_is_fresh_finite_and_in_time(seed):
    chance = np.random.default_rng(seed)
    robot, now, seen = Robot(video=(-2, 0)), 1000, 0
    for _ in range(100):
        now += int(chance.integers(0, 30)) if chance.random() > 0.02 else -500  # now and then the clock goes back
        what = chance.choice(["joints", "front", "wrist", "all", "reset"], p=[0.35, 0.2, 0.2, 0.24, 0.01])
        stamp = now + int(chance.integers(-20, 25)) * (chance.random() < 0.2)
        if what == "reset":
            robot.aligner.reset()
        if what in {"front", "wrist"}:
            robot.image(what, stamp, received=now)
        if what == "all":
            robot.images(now)
        if what in {"joints", "all"}:
            robot.joints(stamp, received=now)
        found = robot.look(now)
        if isinstance(found, NotReady):
            assert found.sentence.startswith(found.stream)
            continue
        seen += 1
        reference = found.image_stamps_ns["front"][-1]
        assert robot.ns(now) - reference <= 200 * MS
        assert all(abs(stamps[-1] - reference) <= 30 * MS for stamps in found.image_stamps_ns.values())
        assert found.stamp_ns == min(stamps[-1] for stamps in found.image_stamps_ns.values())
        assert all(list(stamps) == sorted(stamps) for stamps in found.image_stamps_ns.values())
        np.testing.assert_allclose(found.state["arm"][0, 0], (reference - START) / MS, rtol=1e-5)
    robot.run(now + 30, now + 1500)
    robot.see(now + 1500)  # whatever happened, a second and a half of order is enough
    event(f"observations among the 100: {seen // 20 * 20} or more")


def test_memory_is_bounded_however_long_it_runs():
    robot = Robot(video=(-15, 0))
    for at in range(0, 20_000, 10):
        robot.joints(at)
        robot.images(at)
    streams = robot.aligner._streams.values()
    assert all(len(stream.ring._stamps) < 400 for stream in streams)


def test_a_live_image_message_is_seen_as_it_is():
    sensor_msgs = pytest.importorskip("sensor_msgs.msg", reason="the sensor_msgs wheel is not installed")
    robot = ready_robot()
    message = sensor_msgs.Image(height=2, width=3, encoding="bgr8", step=9, data=list(range(18)))
    robot.aligner.add_image("front", robot.ns(15), read_image(message, "front"), robot.ns(15))
    wanted = np.arange(18, dtype=np.uint8).reshape(1, 2, 3, 3)[..., ::-1]
    np.testing.assert_array_equal(robot.see(25).images["front"], wanted)
