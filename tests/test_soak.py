import pytest

from benchmarks.soak import WORK, soak


@pytest.mark.slow
def test_fits_leave_nothing_behind():
    """A short soak after one that loads and starts whatever is loaded and started once."""
    soak(3 * len(WORK), len(WORK), report=lambda line: None)
    seen = soak(3 * len(WORK), len(WORK), report=lambda line: None)
    assert set(seen["kinds"].values()) == {3}
    assert not any(seen["left_behind"].values()), seen["left_behind"]
    assert seen["samples"][-1]["megabytes"] - seen["samples"][0]["megabytes"] < 30
    assert seen["after_shutdown"]["temporary_files"] == 0
    # joblib and multiprocessing each keep one process that cleans up after a crash.
    assert all("resource_tracker" in one for one in seen["processes_after_shutdown"])
