import sys

import numpy as np
import pytest

from ccot.arrays import choose_backend


def test_no_device_is_numpy_and_copies_nothing():
    backend = choose_backend(None)
    array = np.arange(3.0)
    assert backend.xp is np
    assert backend.send(array) is array
    assert backend.fetch(array) is array
    assert backend.dtype("float32") == np.float32


def test_torch_goes_there_and_back():
    backend = choose_backend("cpu")
    array = np.arange(3.0)
    sent = backend.send(array)
    assert type(sent).__module__ == "torch"
    np.testing.assert_array_equal(backend.fetch(sent), array)
    assert backend.dtype("float64") == sent.dtype


@pytest.mark.parametrize("device", ["cuda:99", "teapot"])
def test_devices_that_are_not_there_are_replaced_by_numpy_with_a_warning(device):
    with pytest.warns(RuntimeWarning, match=f"device='{device}' cannot be used.*NumPy instead"):
        backend = choose_backend(device)
    assert backend.device is None


def test_without_torch_the_message_tells_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    with pytest.raises(ImportError, match=r"'cuda' needs PyTorch: pip install 'ccot\[gpu\]'"):
        choose_backend("cuda")
