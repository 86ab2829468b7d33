"""Memory of messages as large as images."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

ROUNDS, IMAGE_BYTES = 200, 921_600
SCRIPT = f"""
import resource
from groot_ros.nodes.memory import keep_freed_memory
assert keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    images = [bytearray({IMAGE_BYTES}) for _ in range(3)]
    del images
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is a matter of Linux")
def test_an_image_takes_the_memory_of_the_one_before_it():
    faults = int(subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout)
    pages = 3 * IMAGE_BYTES // resource.getpagesize()
    assert faults < 3 * pages, f"{faults} page faults in {ROUNDS} rounds of {pages} pages"
