"""The lists of dependencies agree with each other."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROSDEP_KEYS = {
    "numpy": "python3-numpy",
    "opencv-python-headless": "python3-opencv",
    "pyyaml": "python3-yaml",
    "pillow": "python3-pil",
}


def requirement_names(file: str) -> list[str]:
    lines = [line.strip() for line in (ROOT / file).read_text().splitlines()]
    kept = [line for line in lines if line and not line.startswith("#")]
    return [line.split("[")[0].split(">")[0].split("<")[0].split("=")[0].strip().lower() for line in kept]


def package_xml() -> ElementTree.Element:
    return ElementTree.parse(ROOT / "package.xml").getroot()


def test_what_pip_brings_where_there_is_no_ros_rosdep_brings_where_there_is():
    keys = {element.text for element in package_xml().iter("exec_depend")}
    for name in requirement_names("requirements/rosdep.txt"):
        assert ROSDEP_KEYS.get(name, f"python3-{name}") in keys, f"{name} is not in package.xml"


def test_every_requirement_has_a_tested_version():
    tested = set(requirement_names("requirements/tested.txt"))
    kinds = ("rosdep", "ros_wheels", "train", "test")
    for file in ("requirements.txt", *(f"requirements/{kind}.txt" for kind in kinds)):
        assert set(requirement_names(file)) <= tested, f"{file} asks for more than requirements/tested.txt pins"


def test_package_xml_and_setup_py_say_the_same():
    root, setup = package_xml(), (ROOT / "setup.py").read_text()
    assert root.get("format") == "3"
    assert f'version="{root.findtext("version")}"' in setup
    assert f'__version__ = "{root.findtext("version")}"' in (ROOT / "groot_ros" / "__init__.py").read_text()
    assert root.findtext("license") in setup
    assert root.find("maintainer").get("email") in setup
