"""Damaged metadata gives one sentence that names the file, never a traceback and never a default."""

import pytest

from groot_ros.checkpoint import open_checkpoint
from groot_ros.errors import CheckpointError

FILES = ["config.json", "processor_config.json", "statistics.json", "embodiment_id.json", "groot_ros.json"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is damaged JSON"),
        (b'{"model_type": "Gr00tN1d7", ', r"is damaged JSON"),
        (b"[]", r"holds a JSON list, but must hold an object"),
        (b"\xff\xfe{}", r"cannot be read"),
        (b"[" * 100_000, r"is damaged JSON"),
    ],
    ids=["empty", "truncated", "list", "binary", "deep"],
)
def test_a_damaged_file_is_named(single, name, content, message):
    (single / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{name} {message}"):
        open_checkpoint(single)


@pytest.mark.parametrize("name", ["processor_config.json", "statistics.json"])
def test_a_missing_file_is_named(single, name):
    (single / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name} is missing: copy the whole checkpoint folder"):
        open_checkpoint(single)


@pytest.mark.parametrize("content", ['{"fps": 0}', '{"fps": "30"}', '{"fps": NaN}'])
def test_a_rate_must_be_a_positive_number(single, content):
    (single / "groot_ros.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"groot_ros\.json: fps is .*, but must be a number"):
        open_checkpoint(single)


def test_the_recorded_rate_is_read(single):
    (single / "groot_ros.json").write_text('{"fps": 15, "contract": {"robot": "arm"}}')
    assert open_checkpoint(single).fps == 15.0
