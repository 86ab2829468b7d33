"""Camera messages to RGB: real rclpy messages and plain ones, every encoding, and every way to be wrong."""

from __future__ import annotations

from array import array
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from groot_ros.errors import MessageError
from groot_ros.messages import array_frame, read_image
from groot_ros.messages.encodings import ENCODINGS

sensor_msgs = pytest.importorskip("sensor_msgs.msg", reason="the sensor_msgs wheel is not installed")

RNG = np.random.default_rng(5)
RGB = RNG.integers(0, 256, (6, 8, 3), np.uint8)


def image(pixels: np.ndarray, encoding: str, *, padding: int = 0, big_endian: bool = False, height: int | None = None):
    """A real sensor_msgs/Image whose rows are ``padding`` bytes longer than their pixels."""
    rows = pixels.reshape(pixels.shape[0], -1)
    if big_endian:
        rows = rows.astype(rows.dtype.newbyteorder(">"))
    data = np.ascontiguousarray(rows).view(np.uint8)
    data = np.pad(data, ((0, 0), (0, padding)), constant_values=77)
    message = sensor_msgs.Image()
    message.height, message.width = height or pixels.shape[0], pixels.shape[1]
    message.encoding, message.step, message.is_bigendian = encoding, data.shape[1], int(big_endian)
    message.data = array("B", data.tobytes())
    return message


def as_rosbags(message) -> SimpleNamespace:
    """The same message as rosbags gives it: numpy data."""
    fields = {name: getattr(message, name) for name in ("height", "width", "encoding", "step", "is_bigendian")}
    return SimpleNamespace(**fields, data=np.frombuffer(message.data, np.uint8))


def test_rgb8_shares_the_bytes_of_the_message():
    message = image(RGB, "rgb8")
    frame = read_image(message, "front")
    pixels = frame.rgb()
    np.testing.assert_array_equal(pixels, RGB)
    assert frame.shares_storage
    message.data[0] = (message.data[0] + 1) % 256
    assert pixels[0, 0, 0] == message.data[0]


def test_rgb8_with_padded_rows_shares_the_bytes_too():
    message = image(RGB, "rgb8", padding=5)
    pixels = read_image(message, "front").rgb()
    np.testing.assert_array_equal(pixels, RGB)
    assert np.shares_memory(pixels, np.frombuffer(message.data, np.uint8))


EIGHT_BIT = {
    "rgb8": RGB,
    "bgr8": RGB[..., ::-1],
    "rgba8": np.concatenate([RGB, RNG.integers(0, 256, (6, 8, 1), np.uint8)], axis=2),
    "bgra8": np.concatenate([RGB[..., ::-1], RNG.integers(0, 256, (6, 8, 1), np.uint8)], axis=2),
}


@pytest.mark.parametrize("bag", [False, True], ids=["rclpy", "rosbags"])
@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("encoding", EIGHT_BIT)
def test_colours_come_out_as_rgb_whatever_their_order_and_step(encoding, padding, bag):
    message = image(EIGHT_BIT[encoding], encoding, padding=padding)
    frame = read_image(as_rosbags(message) if bag else message, "front")
    np.testing.assert_array_equal(frame.rgb(), RGB)
    out = np.zeros_like(RGB)
    frame.copy_into(out)
    np.testing.assert_array_equal(out, RGB)


def test_mono8_is_grey_in_three_channels():
    frame = read_image(image(RGB[..., 0], "mono8", padding=1), "front")
    np.testing.assert_array_equal(frame.rgb(), np.repeat(RGB[..., :1], 3, axis=2))


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
def test_mono16_is_scaled_to_8_bits_as_cv_bridge_scales_it(big_endian, padding):
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    frame = read_image(image(values, "mono16", big_endian=big_endian, padding=padding), "front")
    wanted = np.rint(values * (255.0 / 65535.0)).astype(np.uint8)
    np.testing.assert_array_equal(frame.rgb(), np.repeat(wanted[..., None], 3, axis=2))


@pytest.mark.parametrize("encoding", ["rgb16", "bgr16", "rgba16", "bgra16"])
def test_16_bit_colours_are_scaled_and_ordered(encoding):
    channels = ENCODINGS[encoding].channels
    values = RNG.integers(0, 65536, (6, 8, channels), np.uint16)
    wanted = np.rint(values[..., :3] * (255.0 / 65535.0)).astype(np.uint8)
    frame = read_image(image(values, encoding), "front")
    np.testing.assert_array_equal(frame.rgb(), wanted[..., ::-1] if encoding.startswith("bgr") else wanted)


# The pattern names the two pixels of the first row and the two of the second.
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("pattern", ["rggb", "bggr", "gbrg", "grbg"])
def test_a_bayer_pattern_gives_back_a_plain_colour(pattern, bits):
    colour = {"r": 200, "g": 120, "b": 40}
    scale = 1 if bits == 8 else 257
    tile = np.array([colour[letter] * scale for letter in pattern]).reshape(2, 2)
    mosaic = np.tile(tile, (6, 8)).astype(np.uint8 if bits == 8 else np.uint16)
    frame = read_image(image(mosaic, f"bayer_{pattern}{bits}"), "front")
    np.testing.assert_array_equal(frame.rgb()[2:-2, 2:-2], np.broadcast_to([200, 120, 40], (8, 12, 3)))


@pytest.mark.parametrize(
    ("encodings", "order"), [(("yuv422", "uyvy"), "uyvy"), (("yuv422_yuy2", "yuyv"), "yuyv")], ids=["uyvy", "yuyv"]
)
def test_yuv422_has_the_colours_of_its_standard(encodings, order):
    # BT.601 in video range: Y 81, U 90, V 240 is pure red.
    value = {"y": 81, "u": 90, "v": 240}
    pairs = np.array([value[letter] for letter in order], np.uint8)
    pixels = np.tile(pairs, (4, 3)).reshape(4, 6, 2)
    for encoding in encodings:
        rgb = read_image(image(pixels, encoding), "front").rgb()
        assert rgb.shape == (4, 6, 3)
        np.testing.assert_allclose(rgb.reshape(-1, 3).astype(int), np.tile([255, 0, 0], (24, 1)), atol=2)


@pytest.mark.parametrize(("encoding", "colours"), [("nv12", (90, 240)), ("nv21", (240, 90))])
def test_nv12_keeps_its_colours_below_the_picture(encoding, colours):
    planes = np.concatenate([np.full((4, 6), 81, np.uint8), np.tile(np.array(colours, np.uint8), (2, 3))])
    frame = read_image(image(planes, encoding, padding=2, height=4), "front")
    assert (frame.height, frame.width) == (4, 6)
    np.testing.assert_allclose(frame.rgb().reshape(-1, 3).astype(int), np.tile([255, 0, 0], (24, 1)), atol=2)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_copying_into_a_buffer_gives_the_same_as_a_new_array(encoding):
    layout = ENCODINGS[encoding]
    dtype = np.uint8 if layout.bits == 8 else np.uint16
    rows = 6 * layout.rows // 2
    pixels = RNG.integers(0, 65536, (rows, 8, layout.channels)).astype(dtype)
    frame = read_image(image(pixels, encoding, padding=2, height=6), "front")
    history = np.zeros((2, 6, 8, 3), np.uint8)
    frame.copy_into(history[1])
    np.testing.assert_array_equal(history[1], frame.rgb())
    assert not history[0].any()


def test_a_buffer_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"front: the buffer is uint8 \(8, 6, 3\), wanted uint8 \(6, 8, 3\)"):
        read_image(image(RGB, "rgb8"), "front").copy_into(np.zeros((8, 6, 3), np.uint8))


def compressed(data: bytes, form: str = "bgr8; jpeg compressed bgr8"):
    return sensor_msgs.CompressedImage(format=form, data=array("B", data))


def encoded(extension: str, pixels: np.ndarray = RGB[..., ::-1]) -> bytes:
    return cv2.imencode(extension, pixels)[1].tobytes()


def test_png_comes_out_exactly():
    frame = read_image(compressed(encoded(".png"), "rgb8; png compressed bgr8"), "front")
    assert (frame.height, frame.width) == (6, 8)
    np.testing.assert_array_equal(frame.rgb(), RGB)


def test_jpeg_comes_out_as_opencv_decodes_it():
    smooth = np.add.outer(np.arange(48), np.arange(64))[..., None].astype(np.uint8) + np.array([0, 50, 100], np.uint8)
    data = encoded(".jpg", smooth)
    frame = read_image(compressed(data, "jpeg"), "front")
    assert (frame.height, frame.width) == (48, 64)
    wanted = cv2.cvtColor(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    np.testing.assert_array_equal(frame.rgb(), wanted)
    out = np.empty_like(wanted)
    frame.copy_into(out)
    np.testing.assert_array_equal(out, wanted)


def test_a_jpeg_that_the_camera_padded_is_whole():
    data = encoded(".jpg")
    padded = read_image(compressed(data + bytes(1000), "jpeg"), "front").rgb()
    np.testing.assert_array_equal(padded, read_image(compressed(data, "jpeg"), "front").rgb())


def test_a_grey_or_transparent_png_has_three_channels_too():
    np.testing.assert_array_equal(
        read_image(compressed(encoded(".png", RGB[..., 0])), "front").rgb(), np.repeat(RGB[..., :1], 3, axis=2)
    )
    np.testing.assert_array_equal(read_image(compressed(encoded(".png", EIGHT_BIT["bgra8"])), "front").rgb(), RGB)


def fault(message) -> str:
    with pytest.raises(MessageError) as caught:
        read_image(message, "front").rgb()
    return str(caught.value)


def changed(**fields):
    message = image(RGB, "rgb8")
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def test_a_zero_sized_image_is_refused():
    assert fault(changed(width=0)) == "front: the image is 0x6, so it has no pixels; check the camera driver"
    assert "the image is 0x0" in fault(sensor_msgs.Image())


def test_an_unknown_encoding_is_refused_with_those_that_are_known():
    assert fault(changed(encoding="rgb")).startswith("front: found encoding 'rgb'; known are rgb8, bgr8, rgba8")


@pytest.mark.parametrize(
    ("encoding", "why"),
    [("16UC1", "a depth image has no colours"), ("32FC1", "a depth image has no colours"), ("8UC3", "which channel")],
)
def test_depth_and_bare_channels_are_refused_with_the_reason(encoding, why):
    assert why in fault(changed(encoding=encoding))


def test_a_step_below_a_row_is_refused():
    assert fault(changed(step=23)) == "front: step is 23 bytes, but a row of 8 rgb8 pixels has 24"


def test_truncated_data_is_refused_with_both_lengths():
    message = "front: the data is truncated: 143 bytes, wanted 6 rows of 24 = 144"
    assert fault(changed(data=array("B", RGB.tobytes()[:-1]))) == message
    assert "is truncated: 0 bytes" in fault(changed(data=array("B")))


def test_too_much_data_is_refused():
    assert "the data is too long: 145 bytes" in fault(changed(data=array("B", RGB.tobytes() + b"x")))


def test_odd_sizes_are_refused_where_pixels_share_colours():
    pixels = np.zeros((4, 5, 2), np.uint8)
    assert "sizes must be even" in fault(image(pixels, "yuyv"))


def test_a_message_that_is_no_image_is_refused():
    assert "found JointState, wanted a sensor_msgs/Image" in fault(sensor_msgs.JointState())


@pytest.mark.parametrize("extension", [".jpg", ".png"])
def test_truncated_compressed_data_is_refused(extension):
    data = encoded(extension, RNG.integers(0, 256, (64, 64, 3), np.uint8))
    for length in (len(data) // 2, len(data) - 5, 30, 12):
        assert "is truncated" in fault(compressed(data[:length]))


def test_damaged_compressed_data_is_refused():
    data = bytearray(encoded(".png", RNG.integers(0, 256, (64, 64, 3), np.uint8)))
    data[60:4000] = bytes(3940)
    assert fault(compressed(bytes(data))) == "front: the compressed image of 64x64 cannot be decoded; it is damaged"


def test_compressed_data_of_another_kind_is_refused():
    assert "begin neither a JPEG nor a PNG" in fault(compressed(b"GIF89a" + bytes(20), "gif"))
    assert "the 0 bytes begin neither" in fault(compressed(b""))


def test_compressed_depth_is_refused():
    assert "a depth image has no colours" in fault(compressed(encoded(".png"), "16UC1; compressedDepth png"))


def test_a_decoded_picture_is_a_frame_too():
    frame = array_frame(RGB, "row 3")
    assert frame.shares_storage
    assert frame.rgb() is RGB
    with pytest.raises(ValueError, match=r"row 3: a frame is uint8 \(H, W, 3\)"):
        array_frame(RGB.astype(np.float32), "row 3")


def test_every_encoding_equals_cv_bridge():
    cv_bridge = pytest.importorskip("cv_bridge", reason="cv_bridge is not installed; it comes with a ROS distribution")
    for encoding, layout in ENCODINGS.items():
        if encoding in {"nv12", "nv21", "uyvy", "yuyv"}:
            continue  # cv_bridge does not know these names
        pixels = RNG.integers(0, 65536, (6, 8, layout.channels)).astype(np.uint8 if layout.bits == 8 else np.uint16)
        message = image(pixels, encoding)
        wanted = cv_bridge.CvBridge().imgmsg_to_cv2(message, desired_encoding="rgb8")
        np.testing.assert_array_equal(read_image(message, "front").rgb(), wanted, err_msg=encoding)
