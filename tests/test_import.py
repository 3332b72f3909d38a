"""What ``import ccot`` loads, and names that changed."""

import subprocess
import sys

import pytest

import ccot


def test_import_alone_loads_no_library_and_no_algorithm():
    code = (
        "import sys, ccot; print(*[m for m in sys.modules if m.startswith('ccot.') "
        "or m in ('numpy', 'scipy', 'sklearn', 'ot')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["ccot._version"]


def test_every_public_name_is_there():
    for name in (*ccot.__all__, "baselines", "datasets", "metrics", "plotting"):
        assert getattr(ccot, name) is not None
        assert name in dir(ccot)
    assert ccot.detect_jumps.__module__ == "ccot.scalings.jumps"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ccot.nothing


def test_the_former_name_of_estimate_resources_warns():
    with pytest.warns(FutureWarning, match="now called ccot.estimate_resources"):
        assert ccot.estimate is ccot.estimate_resources
