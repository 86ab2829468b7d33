"""Metadata that is written is read back as it was."""

import json

import numpy as np
from support.golden import BACKBONE, TINY_SINGLE

from groot_ros.checkpoint import open_checkpoint, write_metadata


def test_a_checkpoint_written_from_its_typed_values_is_the_same_checkpoint(tmp_path):
    source = open_checkpoint(TINY_SINGLE)
    write_metadata(
        tmp_path,
        config=source.config,
        processor=source.processor,
        statistics=source.statistics,
        embodiment_ids=source.embodiment_ids,
        fps=12.5,
        contract={"robot": "arm"},
    )
    copy = open_checkpoint(tmp_path, backbone=BACKBONE)
    assert (copy.config, copy.processor, copy.embodiment_ids) == (
        source.config,
        source.processor,
        source.embodiment_ids,
    )
    assert copy.fps == 12.5
    assert json.loads((tmp_path / "groot_ros.json").read_text()) == {"fps": 12.5, "contract": {"robot": "arm"}}
    for tag in source.tags:
        for modality in ("state", "action", "relative_action"):
            expected, found = getattr(source.statistics[tag], modality), getattr(copy.statistics[tag], modality)
            assert expected.keys() == found.keys()
            for key, entry in expected.items():
                assert all(np.array_equal(getattr(found[key], name), value) for name, value in vars(entry).items())


def test_no_rate_leaves_no_file_of_ours(tmp_path):
    source = open_checkpoint(TINY_SINGLE)
    write_metadata(
        tmp_path,
        config=source.config,
        processor=source.processor,
        statistics={},
        embodiment_ids={},
        fps=None,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "embodiment_id.json",
        "processor_config.json",
        "statistics.json",
    ]
    assert open_checkpoint(tmp_path, backbone=BACKBONE).fps is None
