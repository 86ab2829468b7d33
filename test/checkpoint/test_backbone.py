"""The backbone's side files: where they are looked for, in which order, and never on the network unasked."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from checkpoint.conftest import edit_json, edit_kwargs
from huggingface_hub import errors
from support.golden import BACKBONE

from groot_ros.checkpoint import open_checkpoint
from groot_ros.checkpoint.hub import is_hub_id
from groot_ros.errors import CheckpointError
from groot_ros.policy import GrootPolicy

COSMOS = "nvidia/Cosmos-Reason2-2B"


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Any connection fails the test, and the hub's cache is an empty folder."""

    def connect(*arguments):
        pytest.fail(f"the network was used: {arguments}")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def cosmos(single):
    """A checkpoint that names the real, gated backbone."""
    edit_json(single / "config.json", lambda data: data.update(model_name=COSMOS))
    edit_kwargs(single, lambda kwargs: kwargs.update(model_name=COSMOS))
    return single


def cache(root, name, source):
    """Lay a repository into the hub's cache as a download does."""
    repository = root / f"models--{name.replace('/', '--')}"
    shutil.copytree(source, repository / "snapshots" / "0123abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abc")
    return repository / "snapshots" / "0123abc"


def test_a_given_folder_comes_first_then_the_checkpoint_then_its_neighbour_then_the_cache(single, tmp_path):
    neighbour = tmp_path / "Qwen" / "Qwen3-VL-tiny"
    assert open_checkpoint(single).backbone.directory == neighbour
    inside = single / "backbone"
    shutil.copytree(BACKBONE, inside)
    assert open_checkpoint(single).backbone.directory == inside
    given = tmp_path / "given"
    shutil.copytree(BACKBONE, given)
    assert open_checkpoint(single, backbone=given).backbone.directory == given
    shutil.rmtree(inside)
    shutil.rmtree(neighbour)
    cached = cache(tmp_path / "cache", "Qwen/Qwen3-VL-tiny", BACKBONE)
    assert open_checkpoint(single).backbone.directory == cached


def test_without_permission_nothing_is_downloaded_and_the_ways_out_are_named(cosmos):
    with pytest.raises(CheckpointError) as refusal:
        open_checkpoint(cosmos)
    message = str(refusal.value)
    assert message.startswith(f"{COSMOS} (tokenizer and image processor of the backbone (looked for first at ")
    assert "is not on this machine and downloads are off" in message
    assert "checkpoint bundle" in message


def test_a_hub_id_without_permission_uses_the_cache_alone(single, tmp_path):
    with pytest.raises(
        CheckpointError, match=r"my-robot \(the checkpoint\) is not on this machine and downloads are off"
    ):
        open_checkpoint("me/my-robot")
    cached = cache(tmp_path / "cache", "me/my-robot", single)
    assert open_checkpoint("me/my-robot", backbone=BACKBONE).path == cached


def test_a_folder_inside_a_hub_repository_is_a_checkpoint(single, tmp_path):
    suites = tmp_path / "suites"
    shutil.copytree(single, suites / "libero_10")
    cached = cache(tmp_path / "cache", "nvidia/GR00T-N1.7-LIBERO", suites)
    opened = open_checkpoint("nvidia/GR00T-N1.7-LIBERO/libero_10", backbone=BACKBONE)
    assert opened.path == cached / "libero_10"
    with pytest.raises(CheckpointError, match=r"GR00T-N1\.7-LIBERO/libero_goal .* is not on this machine"):
        open_checkpoint("nvidia/GR00T-N1.7-LIBERO/libero_goal")


def test_the_sidecar_files_come_along_with_a_download(single, monkeypatch):
    asked = {}

    def download(repository, *, allow_patterns, local_files_only):
        asked.update(repository=repository, patterns=allow_patterns, local=local_files_only)
        return str(single)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    open_checkpoint("me/my-robot", backbone=BACKBONE, allow_download=True)
    assert asked["repository"] == "me/my-robot"
    assert asked["local"] is False
    wanted = {"config.json", "processor_config.json", "statistics.json", "embodiment_id.json", "processor/*.json"}
    assert wanted <= set(asked["patterns"])
    assert not any(
        pattern.endswith((".bin", ".py", ".pt", "*"))
        for pattern in asked["patterns"]
        if "/" not in pattern and not pattern.startswith("policy_")
    )


def _hub_error(kind):
    """An error of the hub's library without the response that its constructor wants: that differs between versions."""
    base = getattr(errors, kind)
    return type(kind, (base,), {"__init__": lambda self: Exception.__init__(self, "refused")})()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            lambda: _hub_error("GatedRepoError"),
            r"is gated: open https://huggingface\.co/nvidia/Cosmos-Reason2-2B, sign in, accept its terms, then run `hf "
            r"auth login`",
        ),
        (
            lambda: _hub_error("RepositoryNotFoundError"),
            r"is not on the hub, or not visible to you: check",
        ),
        (lambda: _hub_error("HfHubHTTPError"), r"could not be downloaded .* check the network and try again"),
        (lambda: ConnectionError("no route"), r"could not be downloaded \(no route\): check the network and try again"),
    ],
    ids=["gated", "absent", "broken", "offline"],
)
def test_a_download_that_fails_says_what_to_do(cosmos, monkeypatch, error, message):
    def download(*arguments, **options):
        raise error()

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(cosmos, allow_download=True)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "preprocessor_config.json").unlink(), r"preprocessor_config\.json is missing"),
        (lambda folder: (folder / "config.json").write_text("{}"), r"model_type is None, but must be 'qwen3_vl'"),
        (
            lambda folder: [(folder / f).unlink() for f in ("tokenizer.json", "vocab.json")],
            r"has no tokenizer: tokenizer",
        ),
        (shutil.rmtree, r"The backbone folder .* is missing"),
    ],
    ids=["preprocessor", "model", "tokenizer", "folder"],
)
def test_an_incomplete_backbone_folder_is_refused(single, tmp_path, damage, message):
    folder = tmp_path / "given"
    shutil.copytree(BACKBONE, folder)
    damage(folder)
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(single, backbone=folder)


def test_a_backbone_of_another_size_is_refused(single, tmp_path):
    edit_json(single / "config.json", lambda data: data.update(select_layer=7))
    with pytest.raises(CheckpointError, match=r"does not belong to this checkpoint: it has 6 layers, but select"):
        open_checkpoint(single)
    folder = tmp_path / "given"
    shutil.copytree(BACKBONE, folder)
    edit_json(folder / "config.json", lambda data: data["text_config"].update(hidden_size=64))
    with pytest.raises(CheckpointError, match=r"its hidden_size is 64, but backbone_embedding_dim is 48\. Give"):
        open_checkpoint(single, backbone=folder)


def test_a_backbone_without_a_size_is_refused(single):
    path = single.parent / "Qwen" / "Qwen3-VL-tiny" / "config.json"
    edit_json(path, lambda data: data["vision_config"].pop("depth"))
    with pytest.raises(CheckpointError, match=r"config\.json: vision_config: depth is missing"):
        open_checkpoint(single)


def test_the_image_processor_is_found_where_newer_versions_of_transformers_write_it(single):
    folder = single.parent / "Qwen" / "Qwen3-VL-tiny"
    expected = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": expected}))
    assert open_checkpoint(single).backbone.preprocessor == expected


def test_code_that_a_checkpoint_brings_is_never_run(single, tmp_path):
    trace = tmp_path / "trace"
    code = f"open({str(trace)!r}, 'w')"
    for folder in (single, single.parent / "Qwen" / "Qwen3-VL-tiny"):
        (folder / "evil.py").write_text(code)
        edit_json(folder / "config.json", lambda data: data.update(auto_map={"AutoConfig": "evil.Config"}))
    GrootPolicy.from_checkpoint(single, "new_embodiment", device="cpu", rate_hz=10.0)
    assert not trace.exists()


class _GatedHub(BaseHTTPRequestHandler):
    """Answers as the hub does for a gated repository: its list is public, its files are not."""

    def do_GET(self):
        public = self.path.startswith("/api/models/")
        listing = [{"type": "file", "path": "config.json", "size": 2, "oid": "0" * 40}]
        about = {"id": COSMOS, "sha": "0" * 40, "gated": "auto", "siblings": [{"rfilename": "config.json"}]}
        body = json.dumps(listing if "/tree/" in self.path else about).encode() if public else b""
        self.send_response(200 if public else 403)
        self.send_header("Content-Length", str(len(body)))
        if not public:
            self.send_header("X-Error-Code", "GatedRepo")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


def test_a_gated_repository_says_what_to_accept_where(cosmos, tmp_path):
    code = f"from groot_ros.checkpoint import open_checkpoint; open_checkpoint({str(cosmos)!r}, allow_download=True)"
    with ThreadingHTTPServer(("127.0.0.1", 0), _GatedHub) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{hub.server_port}"
        environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_TOKEN": ""}
        result = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        hub.shutdown()
    assert result.returncode == 1
    wanted = f"{COSMOS} (tokenizer and image processor of the backbone"
    assert wanted in result.stderr
    assert f"is gated: open https://huggingface.co/{COSMOS}, sign in, accept its terms" in result.stderr


@pytest.mark.parametrize("name", ["owner/name", "nvidia/GR00T-N1.7-LIBERO/libero_10"])
def test_hub_ids_are_recognised(name):
    assert is_hub_id(name)


@pytest.mark.parametrize("name", ["name", "./a/b", "/a/b", "../a/b", "a/../b", "~/a/b", "a//b", "C:\\a\\b", ""])
def test_paths_are_no_hub_ids(name):
    assert not is_hub_id(name)
