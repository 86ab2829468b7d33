"""``check`` says what it found, in the terminal and in one HTML file, and its exit code says whether to train."""

import re
import shutil

from support.datasets import HORIZON

from groot_ros.cli.check import main


def test_a_good_dataset_exits_with_0(dataset_root, capsys):
    assert main([str(dataset_root), "--horizon", str(HORIZON)]) == 0
    told = capsys.readouterr().out
    assert "3 episodes, 83 rows at 20 Hz" in told.replace("\n", " ")
    assert "no errors, 0 warnings" in told


def test_errors_exit_with_1_and_are_told_with_their_episode(dataset_root, tmp_path, capsys):
    root = shutil.copytree(dataset_root, tmp_path / "copy")
    (root / "videos/observation.images.front/chunk-000/file-001.mp4").unlink()
    assert main([str(root), "--horizon", str(HORIZON), "--quick"]) == 1
    assert "1 errors, 0 warnings: mend the errors before training" in capsys.readouterr().out


def test_a_directory_that_is_no_dataset_exits_with_2_and_one_sentence(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert re.search("error: .* is not a LeRobot dataset", capsys.readouterr().err)


def test_the_html_report_is_one_file_that_needs_nothing_else(dataset_root, tmp_path):
    page = tmp_path / "report.html"
    assert main([str(dataset_root), "--horizon", str(HORIZON), "--html", str(page)]) == 0
    text = page.read_text()
    sources = re.findall(r'src="([^"]{0,40})', text)
    # three pictures of each of two cameras in three episodes; a plot an episode, two of ranges, one of lengths
    assert len([source for source in sources if source.startswith("data:image/jpeg;base64,")]) == 18
    assert len([source for source in sources if source.startswith("data:image/png;base64,")]) == 6
    assert len(sources) == 24
    assert not re.search(r"https?://|<link|<script", text)
    assert "open the drawer" in text


def test_a_task_with_markup_stays_text_in_the_page(dataset_root, tmp_path):
    root = shutil.copytree(dataset_root, tmp_path / "copy")
    tasks = root / "groot/meta/tasks.jsonl"
    tasks.write_text(tasks.read_text().replace("open the drawer", "<script>open</script>"))
    page = tmp_path / "report.html"
    main([str(root / "groot"), "--html", str(page), "--quick"])
    assert "<script>" not in page.read_text()
    assert "&lt;script&gt;open" in page.read_text()
