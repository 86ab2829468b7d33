"""Which test module runs which golden files: every file belongs to exactly one, so that none is forgotten.

A module that runs new golden files adds its line here. That a file is claimed once does not keep other modules from
using it too: the one named here is the one that would be missed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """Golden files of one folder, and the test module that runs them.

    Attributes:
        folder: Folder under ``test/golden``.
        pattern: Shell pattern of the file names.
        module: The test module, relative to the repository.

    """

    folder: str
    pattern: str
    module: str


CLAIMS = (
    Claim("decode", "d*.npz", "test/processing/test_action.py"),
    Claim("decode", "e01_*.npz", "test/processing/test_rollout.py"),
    Claim("preprocess", "a0*.npz", "test/processing/test_processor_golden.py"),
    Claim("preprocess", "a1[0-8]_*.npz", "test/processing/test_processor_golden.py"),
    Claim("preprocess", "a19_*.npz", "test/processing/test_images.py"),
    Claim("preprocess", "a20_*.npz", "test/processing/test_images.py"),
    Claim("preprocess", "[bc]*.npz", "test/processing/test_processor_golden.py"),
    Claim("model", "*.npz", "test/model/test_golden_forward.py"),
    Claim("lerobot", "torch_geometry*.npz", "test/processing/test_processor_golden.py"),
    Claim("lerobot", "no_target_size*.npz", "test/processing/test_processor_golden.py"),
    Claim("tokenizer", "prompts.json", "test/processing/test_prompt.py"),
    Claim("preprocess", "t*.npz", "test/training/test_golden.py"),
    Claim("lerobot", "train_augment*.npz", "test/training/test_golden.py"),
)
