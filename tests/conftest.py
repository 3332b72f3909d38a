import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# No deadline: a shared machine may stall any single example.
settings.register_profile("default", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=1000)
# Thousands of mutants, each with the same few examples; a failure is enough, however large.
settings.register_profile(
    "mutation",
    deadline=None,
    max_examples=20,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

PROJECT = Path(__file__).parents[1]
# What is asked is what Windows and macOS lack, so that a simulation of them is skipped too.
needs_unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes of Unix")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs Linux's /proc"
)


@pytest.fixture(scope="session")
def data_home():
    """Folder of real matrices, which the repository does not ship."""
    folder = Path(os.environ.get("CCOT_DATA", PROJECT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set CCOT_DATA to the folder that holds them")
    return folder


@pytest.fixture
def one_torch_thread():
    """Keep PyTorch from waiting for cores that other tests use."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
