import pytest
from support.datasets import write_dataset


@pytest.fixture(scope="session")
def dataset_root(tmp_path_factory):
    """A dataset of three episodes that no test changes."""
    return write_dataset(tmp_path_factory.mktemp("dataset") / "cubes")
