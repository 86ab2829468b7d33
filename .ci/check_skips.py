"""Prints every skipped test of a run and fails on one whose reason is not on the list (standard library only)."""

from __future__ import annotations

import fnmatch
import sys
from pathlib import Path
from xml.etree import ElementTree


def skipped_tests(results: Path) -> list[tuple[str, str]]:
    """Name and reason of every skipped test in a folder of JUnit files, each pair once."""
    found: dict[tuple[str, str], None] = {}
    for file in sorted(results.glob("*.xml")):
        for case in ElementTree.parse(file).iter("testcase"):
            for skip in case.iter("skipped"):
                name = f"{case.get('classname')}::{case.get('name')}"
                reason = skip.get("message") or ""
                if "collection skipped" in reason:
                    reason = f"{reason}: {skip.text or ''}"
                found[name, " ".join(reason.split())] = None
    return list(found)


def allowed_patterns(file: Path) -> list[str]:
    """The patterns of the list; the reason after ``|`` is for people."""
    lines = [line.strip() for line in file.read_text().splitlines()]
    return [line.split("|")[0].strip() for line in lines if line and not line.startswith("#")]


def main(results: Path, allowed: Path) -> int:
    """0 if tests ran and every skip is allowed, else 1."""
    if not list(results.glob("*.xml")):
        print(f"no test results in {results}: no test ran")
        return 1
    patterns = allowed_patterns(allowed)
    unexpected = 0
    for name, reason in skipped_tests(results):
        fine = any(fnmatch.fnmatch(reason, pattern) for pattern in patterns)
        unexpected += not fine
        print(f"{'skipped' if fine else 'SKIPPED, BUT NOT ALLOWED'}: {name}: {reason}")
    if unexpected:
        print(f"{unexpected} skipped tests are not on {allowed}")
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
