"""Frames come back by their number, whatever the order of access and the structure of the file."""

from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groot_ros.dataset.video_reader import VideoReader
from groot_ros.dataset.video_writer import VideoEncoding, VideoWriter
from groot_ros.errors import DatasetError

HEIGHT, WIDTH, FRAMES = 48, 64, 40


def picture(number):
    """A grey level that tells the frame's number after any compression, with a gradient over it."""
    gradient = np.linspace(0, 15, WIDTH).astype(np.uint8)
    return np.broadcast_to((6 * number + gradient)[None, :, None], (HEIGHT, WIDTH, 3)).astype(np.uint8)


def write(path, encoding):
    with VideoWriter(path, fps=30, height=HEIGHT, width=WIDTH, encoding=encoding, threads=1) as video:
        for number in range(FRAMES):
            video.add(picture(number))
    return path


def numbers_of(frames):
    return [round((float(frame.mean()) - 7.5) / 6) for frame in frames]


@pytest.fixture(scope="module")
def b_frames(tmp_path_factory):
    """A file as other tools make it: B-frames, a key frame every 12 frames, time stamps that start late."""
    path = tmp_path_factory.mktemp("video") / "b_frames.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"bf": "3", "g": "12", "crf": "10"})
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        for number in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24")
            frame.pts, frame.time_base = number + 7, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(wanted=st.lists(st.integers(0, FRAMES - 1), min_size=1, max_size=8))
def test_any_frames_in_any_order_are_the_right_ones(b_frames, wanted):
    video = VideoReader(b_frames)
    assert numbers_of(video.read(wanted)) == wanted
    assert numbers_of(video.read(wanted[::-1])) == wanted[::-1]
    video.close()


@pytest.mark.parametrize("codec", ["h264", "hevc", "av1", "lossless"])
def test_every_codec_keeps_frames_on_the_grid_and_in_order(tmp_path, codec):
    video = VideoReader(write(tmp_path / "video.mp4", VideoEncoding(codec=codec)))
    assert video.frame_count == FRAMES
    assert video.size == (HEIGHT, WIDTH)
    np.testing.assert_allclose(video.times(), np.arange(FRAMES) / 30, atol=1e-4)
    assert numbers_of(video.read(range(FRAMES))) == list(range(FRAMES))
    assert numbers_of(video.read([39, 0, 20, 20])) == [39, 0, 20, 20]


def test_the_lossless_codec_gives_back_every_bit(tmp_path):
    noise = np.random.default_rng(3).integers(0, 256, (5, HEIGHT - 1, WIDTH - 1, 3)).astype(np.uint8)
    encoding = VideoEncoding(codec="lossless")
    with VideoWriter(tmp_path / "n.mp4", fps=10, height=HEIGHT - 1, width=WIDTH - 1, encoding=encoding) as video:
        for frame in noise:
            video.add(frame)
    np.testing.assert_array_equal(VideoReader(tmp_path / "n.mp4").read(range(5)), noise)


def test_better_quality_is_asked_for_by_a_smaller_crf(tmp_path):
    noise = np.random.default_rng(3).integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    sizes = {}
    for crf in (10, 40):
        with VideoWriter(
            tmp_path / f"{crf}.mp4", fps=10, height=HEIGHT, width=WIDTH, encoding=VideoEncoding(crf=crf)
        ) as video:
            for _ in range(4):
                video.add(noise)
        sizes[crf] = (tmp_path / f"{crf}.mp4").stat().st_size
    assert sizes[10] > 2 * sizes[40]


def test_at_least_every_second_frame_is_a_key_frame(tmp_path):
    with av.open(str(write(tmp_path / "video.mp4", VideoEncoding()))) as container:
        keys = [packet.is_keyframe for packet in container.demux(video=0) if packet.size]
    assert all(keys[::2])


def test_a_time_finds_its_frame_or_is_refused(tmp_path):
    video = VideoReader(write(tmp_path / "video.mp4", VideoEncoding()))
    assert video.number_at(10 / 30, tolerance_s=0.001) == 10
    with pytest.raises(DatasetError, match=r"no frame lies within 0.001000 s of 5.000000 s; the nearest is frame 39"):
        video.number_at(5.0, tolerance_s=0.001)


def test_a_frame_beyond_the_file_is_refused_with_both_numbers(tmp_path):
    video = VideoReader(write(tmp_path / "video.mp4", VideoEncoding()))
    with pytest.raises(DatasetError, match="has 40 frames, but frame 40 is asked for"):
        video.read([0, 40])


def test_files_that_are_no_videos_are_named(tmp_path):
    whole = write(tmp_path / "video.mp4", VideoEncoding()).read_bytes()
    for name, content in (("cut.mp4", whole[: len(whole) // 2]), ("empty.mp4", b""), ("text.mp4", b"hello" * 100)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DatasetError, match=f"{name} is not a video that can be read"):
            VideoReader(tmp_path / name)
    with pytest.raises(DatasetError, match=r"none\.mp4 is missing"):
        VideoReader(tmp_path / "none.mp4")


def test_a_frame_whose_bytes_are_gone_is_an_error_and_not_another_picture(tmp_path):
    path = write(tmp_path / "video.mp4", VideoEncoding())
    with av.open(str(path)) as container:
        spans = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]
    content = bytearray(path.read_bytes())
    for position, size in spans[20:22]:
        content[position : position + size] = bytes(size)
    path.write_bytes(content)
    video = VideoReader(path)
    with pytest.raises(DatasetError, match=r"frame 20 "):
        video.read([20])
    assert numbers_of(video.read([10, 30])) == [10, 30]
