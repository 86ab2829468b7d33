"""``report.html`` in a real browser: it works offline, everything is drawn, and it can be read on a phone."""

from __future__ import annotations

import json

import pytest
import yaml
from support.arm_bags import smooth, write_arm_bag
from support.browser import browser
from support.evaluation import arm_dict

from groot_ros.checkpoint import write_tiny_checkpoint
from groot_ros.cli.evaluate import main

pytestmark = pytest.mark.slow
DRAWN = """
const canvas = arguments[0], pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
const colours = new Set();
for (let index = 0; index < pixels.length; index += 4)
  if (pixels[index + 3] > 200) colours.add((pixels[index] << 16) | (pixels[index + 1] << 8) | pixels[index + 2]);
return colours.size;
"""
MOVE = """
const slider = document.getElementById("slider");
slider.value = arguments[0];
slider.dispatchEvent(new Event("input"));
return [
  document.querySelector("#pictures img").src,
  document.querySelector("#plots canvas").cursor,
  document.getElementById("now").textContent,
];
"""
SMALL_TEXT = """
return [...document.querySelectorAll("main *")].filter((node) =>
  node.children.length === 0 && node.textContent.trim() && node.offsetParent
  && parseFloat(getComputedStyle(node).fontSize) < 12).map((node) => node.outerHTML);
"""
OVERFLOW = """
const inside = (node) => node.closest(".scroll, .moments");
return [...document.querySelectorAll("main *")].filter((node) =>
  !inside(node) && node.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((node) => node.tagName + "." + node.className);
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of an untrained policy on two bags."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "contract.yaml").write_text(yaml.safe_dump(arm_dict(), sort_keys=False))
    write_tiny_checkpoint(folder / "checkpoint", embodiment_tag="new_embodiment", fps=20.0)
    for number in range(2):
        write_arm_bag(folder / f"bag_{number}", 4.0, command=lambda time_s, shift=number: smooth(time_s + shift))
    arguments = ["--checkpoint", str(folder / "checkpoint"), "--contract", str(folder / "contract.yaml")]
    bags = [str(folder / f"bag_{number}") for number in range(2)]
    more = ["--other-instruction", "open the drawer", "--probes", "1", "--latency", "0.05", "--device", "cpu"]
    assert main([*bags, *arguments, *more, "--output", str(folder / "report")]) == 0
    return folder / "report"


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_opens_without_an_error_and_everything_is_drawn_and_readable(report, width, tmp_path):
    with browser(report / "report.html", width) as page:
        canvases = page.driver.find_elements("css selector", "#plots canvas, #horizon canvas, #timeline")
        assert len(canvases) == 3 + 2 + 1
        for canvas in canvases:
            assert page.run(DRAWN, canvas) >= 3
        assert page.run("return document.documentElement.scrollWidth") == width
        assert page.run(OVERFLOW) == []
        assert page.run(SMALL_TEXT) == []
        verdict = json.loads((report / "metrics.json").read_text())["verdict"]
        text = page.run("return document.getElementById('verdict').innerText")
        assert verdict["headline"] in text
        assert all(reason["sentence"] in text for reason in verdict["reasons"])
        page.screenshot(tmp_path / f"{width}.png")
        assert page.console() == []


def test_the_slider_moves_the_frame_and_the_cursor(report):
    with browser(report / "report.html", 1280) as page:
        before, after = page.run(MOVE, 200), page.run(MOVE, 800)
        assert before[0].startswith("data:image/jpeg;base64,")
        assert before[0] != after[0]
        assert after[1] > before[1] + 100
        assert before[2] != after[2]
        assert page.console() == []


def test_a_click_on_an_episode_shows_it(report):
    with browser(report / "report.html", 1280) as page:
        first = page.run("return document.getElementById('episode').value")
        page.run("document.querySelector('tr.choose:not(.chosen)').click()")
        assert page.run("return document.getElementById('episode').value") != first
        assert page.console() == []


def test_a_reason_of_the_verdict_leads_to_the_episode_that_it_speaks_of(report):
    reasons = json.loads((report / "metrics.json").read_text())["verdict"]["reasons"]
    assert "error" in [reason["moments"] for reason in reasons], "random weights are no better than holding still"
    with browser(report / "report.html", 1280) as page:
        worst = page.run("return document.querySelector('tr.choose').dataset.episode")
        page.run("document.querySelector('tr.choose:not(.chosen)').click()")
        assert page.run("return document.getElementById('episode').value") != worst
        page.run("document.querySelector('button.jump[data-kind=error]').click()")
        assert page.run("return document.getElementById('episode').value") == worst
        assert page.console() == []
