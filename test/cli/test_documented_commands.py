"""What the documentation tells a user to type is what the tools take."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from functools import cache
from pathlib import Path

import pytest

from groot_ros.__main__ import TOOLS
from groot_ros.nodes.policy_parameters import SETTINGS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"groot_ros (?P<tool>\w+)(?P<rest>[^`\n#]*(?:\\\n[^`\n#]*)*)")
NESTED = ("checkpoint", "parity")


def commands() -> list[tuple[str, str, str]]:
    return [
        (page.name, match["tool"], match["rest"].split("--ros-args")[0])
        for page in PAGES
        for match in COMMAND.finditer(page.read_text())
        if match["tool"] in TOOLS
    ]


@cache
def help_of(*words: str) -> str:
    tool = importlib.import_module(f"groot_ros.cli.{words[0]}")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as end:
        tool.main([*words[1:], "--help"])
    assert end.value.code == 0
    return said.getvalue()


@pytest.mark.parametrize(("page", "tool", "rest"), commands())
def test_every_option_in_the_documentation_is_one_of_the_tool(page, tool, rest):
    words = rest.split()
    inner = [words[0]] if tool in NESTED and words and not words[0].startswith("-") else []
    known = help_of(tool, *inner)
    for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", rest):
        assert re.search(rf"{option}\b", known), f"{page}: {tool} has no {option}"


@pytest.mark.parametrize("tool", TOOLS)
def test_the_help_of_every_tool_says_what_it_does_and_shows_an_example(tool):
    text = help_of(tool)
    assert re.search(r"\n\n[A-Z].*\.\n", text), "no description"
    assert f"python -m groot_ros {tool}" in text


def test_bags_may_stand_before_and_the_dataset_behind_the_options(tmp_path, capsys):
    from groot_ros.cli.convert import main

    bag = str(tmp_path / "bag")
    assert main([bag, "--contract", str(ROOT / "config/robots/demo.yaml"), str(tmp_path / "dataset")]) == 2
    assert f"{bag} is not there" in capsys.readouterr().err


def test_a_misspelt_option_of_the_policy_is_refused_before_anything_starts(capsys):
    from groot_ros.cli.policy import main

    with pytest.raises(SystemExit) as end:
        main(["--contracts", "my_robot.yaml", "--ros-args"])
    assert end.value.code == 2
    assert "unrecognized arguments: --contracts" in capsys.readouterr().err


def test_every_parameter_of_the_policy_node_stands_in_its_page():
    page = (ROOT / "docs" / "policy_node.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(SETTINGS)
