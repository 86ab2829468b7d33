"""No golden file is forgotten: each is claimed by one test module, and that module really runs it."""

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from support.golden import GOLDEN
from support.golden_claims import CLAIMS

REPOSITORY = Path(__file__).parent.parent
FILES = [*sorted(GOLDEN.glob("*/*.npz")), GOLDEN / "tokenizer" / "prompts.json"]


def claims_of(path):
    return [claim for claim in CLAIMS if claim.folder == path.parent.name and fnmatch(path.name, claim.pattern)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_golden_file_is_claimed_exactly_once(path):
    claims = claims_of(path)
    assert len(claims) == 1, f"{path.parent.name}/{path.name}: claimed by {claims}, see test/support/golden_claims.py"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.folder}/{claim.pattern}")
def test_a_claim_names_files_that_are_there(claim):
    assert [path for path in FILES if claim in claims_of(path)]


def test_every_file_of_the_readme_is_here_and_every_file_is_in_the_readme():
    listed = {
        line.split("|")[1].strip() for line in (GOLDEN / "README.md").read_text().splitlines() if ".npz |" in line
    }
    assert listed == {path.name for path in FILES if path.suffix == ".npz"}


def test_a_claiming_module_runs_its_files():
    """A file is run when a test's id or the module's text names it."""
    modules = sorted({claim.module for claim in CLAIMS})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *modules]
    collected = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert collected.returncode == 0, collected.stdout[-2000:] + collected.stderr[-2000:]
    ids = collected.stdout.splitlines()
    forgotten = []
    for path in FILES:
        claim = claims_of(path)[0]
        in_ids = any(line.startswith(f"{claim.module}::") and path.stem in line for line in ids)
        if not in_ids and path.stem not in (REPOSITORY / claim.module).read_text():
            forgotten.append(f"{path.parent.name}/{path.name} by {claim.module}")
    assert not forgotten, forgotten
