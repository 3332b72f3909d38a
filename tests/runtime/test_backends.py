import gc
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import CCOT, CCOTGW, TransportCoclustering
from ccot.datasets import make_latent_blocks
from ccot.runtime import backends
from ccot.runtime.backends import choose_backend, to_numpy


def test_no_device_is_numpy_and_copies_nothing():
    backend = choose_backend(None)
    array = np.arange(3.0)
    assert backend.xp is np
    assert backend.send(array) is array
    assert backend.fetch(array) is array
    assert backend.xp.float32 == np.float32


def test_threads_share_items_and_keep_their_order():
    backend, seen = choose_backend(None, n_jobs=3), set()
    together = threading.Barrier(3, timeout=20)

    def work(item):
        seen.add(threading.get_ident())
        if item < 3:
            together.wait()
        return 2 * item

    assert backend.map(work, range(50)) == [2 * item for item in range(50)]
    assert len(seen) == 3
    assert threading.get_ident() in seen
    assert backend.map(work, []) == []


@pytest.mark.parametrize("bad", [0, 49])
def test_errors_of_threads_are_raised(bad):
    def work(item):
        return [0][1 if item == bad else 0]

    with pytest.raises(IndexError, match="out of range"):
        choose_backend(None, n_jobs=2).map(work, range(50))


def test_after_an_error_nobody_begins_another_item():
    backend, begun = choose_backend(None, n_jobs=2), []
    failed = threading.Event()

    def work(item):
        begun.append(item)
        if item:
            assert failed.wait(20)
            time.sleep(0.1)  # the error is on its way
        else:
            failed.set()
            raise KeyError(item)

    with pytest.raises(KeyError):
        backend.map(work, range(1000))
    assert len(begun) <= 2
    # The threads are as useful as before.
    assert backend.map(abs, range(-50, 0)) == list(range(50, 0, -1))


def test_threads_that_are_busy_elsewhere_are_not_waited_for():
    backend = choose_backend(None, n_jobs=2)
    busy, done = threading.Event(), threading.Event()
    main = threading.get_ident()

    def hold(item):
        if threading.get_ident() != main:
            busy.set()
            assert done.wait(20)
        else:
            assert busy.wait(20)
            # The only helper holds: these are all done by the thread that asks for them.
            assert backend.map(abs, [-1, -2, -3]) == [1, 2, 3]
            done.set()
        return item

    assert backend.map(hold, [0, 1]) == [0, 1]


def test_those_who_ask_at_once_share_the_threads(monkeypatch):
    others, seen = {"one", "two", "three"}, set()
    monkeypatch.setattr(backends, "_AT_WORK", others)
    backend = choose_backend(None, n_jobs=4)
    backend.map(lambda item: seen.add(threading.get_ident()), range(100))
    assert seen == {threading.get_ident()}
    with pytest.raises(ZeroDivisionError):
        backend.map(lambda item: 1 / item, [1, 0])
    assert others == {"one", "two", "three"}


def test_an_interruption_between_the_last_item_and_the_answer_is_not_lost(monkeypatch):
    class Interrupting(backends.SimpleQueue):
        def put(self, item):
            super().put(item)
            if isinstance(item, int) and threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt

    backend = choose_backend(None, n_jobs=2)
    backend.map(abs, [1, 2])
    monkeypatch.setattr(backends, "SimpleQueue", Interrupting)
    with pytest.raises(KeyboardInterrupt):
        backend.map(abs, [1, 2, 3])
    assert not backends._AT_WORK


def test_callers_at_once_start_the_threads_once():
    backend, together = choose_backend(None, n_jobs=9), threading.Barrier(8, timeout=20)

    def call():
        together.wait()
        backend.map(lambda _: time.sleep(0.01), range(9))

    before = threading.active_count()
    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert threading.active_count() - before == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_lock_that_nobody_frees():
    held = threading.Event()

    def hold():
        with backends._LOCK:
            held.set()
            time.sleep(0.1)

    threading.Thread(target=hold).start()
    held.wait()
    process = os.fork()
    if not process:
        os._exit(not backends._LOCK.acquire(timeout=10))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_an_error_does_not_stay_in_memory():
    held = []

    class Large:
        pass

    def work(item):
        large = Large()
        held.append(weakref.ref(large))
        raise ValueError(item)

    gc.disable()
    try:
        with suppress(ValueError):
            choose_backend(None, n_jobs=2).map(work, range(2))
        assert held[0]() is None
    finally:
        gc.enable()


TWO_FITS_AT_ONCE = """
from threading import Event, Thread
from threadpoolctl import threadpool_info
from ccot.runtime.backends import one_blas_thread

def n_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

before, within = n_threads(), []
first_is_in, second_is_in, first_is_out = Event(), Event(), Event()

def first():
    with one_blas_thread():
        first_is_in.set()
        second_is_in.wait()
    first_is_out.set()

def second():
    first_is_in.wait()
    with one_blas_thread(), one_blas_thread():
        second_is_in.set()
        first_is_out.wait()
        within.extend(n_threads())

threads = [Thread(target=first), Thread(target=second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert set(within) == {1}, within
assert n_threads() == before, (n_threads(), before)
"""


def test_blas_has_its_threads_again_after_two_fits_at_once():
    """In a process of its own, whose BLAS may have more than one thread."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", TWO_FITS_AT_ONCE]
    ended = subprocess.run(command, env=environment, timeout=60, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_are_worked_on_in_parts_that_fit(n_jobs):
    backend = replace(choose_backend(None, n_jobs=n_jobs), chunk_bytes=160)
    array, sizes = np.arange(42.0).reshape(21, 2), []

    def double(part, other):
        sizes.append((len(part), len(other)))
        return part * other[:, None]

    expected = array * np.arange(21)[:, None]
    np.testing.assert_array_equal(backend.by_rows(double, array, np.arange(21)), expected)
    assert sorted(sizes) == [(3, 3)] + [(6, 6)] * 3
    sizes.clear()
    np.testing.assert_array_equal(backend.by_rows(double, array[:9], np.arange(9)), expected[:9])
    assert sizes == [(9, 9)]
    parts = replace(backend, chunk_bytes=32)._row_parts([array], None)
    assert [part.stop - part.start for part in parts] == [3] * 7
    # A device takes all that fit at once.
    parts = replace(backend, device="there")._row_parts([array], None)
    assert [part.stop - part.start for part in parts] == [7] * 3


def test_torch_goes_there_and_back():
    backend = choose_backend("cpu")
    array = np.arange(3.0)
    sent = backend.send(array)
    assert type(sent).__module__ == "torch"
    np.testing.assert_array_equal(backend.fetch(sent), array)
    assert backend.xp.float64 == sent.dtype


@pytest.mark.parametrize("strange", ["backwards", "read only"])
def test_torch_takes_arrays_that_it_cannot_share(strange):
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = strange != "read only"
    array = array[::-1] if strange == "backwards" else array
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(to_numpy(choose_backend("cpu").send(array)), array)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_sparse_matrices_travel(device):
    backend = choose_backend(device)
    X = sp.random_array((9, 7), density=0.4, random_state=np.random.default_rng(0), format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sent = backend.send(X)
    ones = backend.send(np.eye(7))
    np.testing.assert_allclose(backend.fetch(sent @ ones), X.toarray())


def test_what_is_there_stays_there():
    backend = choose_backend("cpu")
    sent = backend.send(np.arange(3.0))
    assert backend.send(sent) is sent
    assert backend.free_bytes() is None


@pytest.mark.parametrize("device", ["cuda:99", "teapot"])
def test_devices_that_are_not_there_are_replaced_by_numpy_with_a_warning(device):
    with pytest.warns(RuntimeWarning, match=f"device='{device}' cannot be used.*NumPy instead"):
        backend = choose_backend(device)
    assert backend.device is None


def test_devices_without_the_precision_asked_for_are_replaced_too(monkeypatch):
    torch = choose_backend("cpu").xp

    def zeros(*shape, dtype, **where):
        if dtype == torch.float64:
            raise TypeError("no float64 here")

    monkeypatch.setattr(torch, "zeros", zeros)
    assert choose_backend("cpu").device == "cpu"
    with pytest.warns(RuntimeWarning, match="no float64 here"):
        assert choose_backend("cpu", "float64").device is None


@pytest.mark.parametrize("method", [CCOT, CCOTGW, TransportCoclustering])
@pytest.mark.parametrize("call", ["fit", "fit_predict"])
def test_the_warning_points_at_the_line_that_called(method, call):
    X = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 40, 30, sigma=0.05, random_state=0).data
    model = method(device="cuda:99", random_state=0)
    with pytest.warns(RuntimeWarning, match="cannot be used") as caught:
        getattr(model, call)(X)
    assert {warning.filename for warning in caught} == {__file__}


def test_without_torch_the_message_tells_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    with pytest.raises(ImportError, match=r"'cuda' needs PyTorch: pip install 'ccot\[gpu\]'"):
        choose_backend("cuda")
