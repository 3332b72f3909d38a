"""Estimates beside real fits."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import CCOT, CCOTGW, TransportCoclustering, resources
from ccot import estimate_resources as estimate
from ccot.blocks import streaming
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.sources import FunctionSource

MEANS = load_simulated("D1").block_means
CASES = {
    "ccot, square": ("ccot", (300, 300), {}),
    "ccot, tall": ("ccot", (6000, 60), {}),
    "ccot, wide": ("ccot", (60, 3000), {"n_samplings": 400}),
    "ccot-gw": ("ccot-gw", (400, 200), {"exact_refinement": False}),
    "ccot-gw, few points": ("ccot-gw", (2000, 200), {"exact_refinement": False, "n_support": 50}),
    "transport": ("transport", (1000, 300), {}),
}
ESTIMATORS = {"ccot": CCOT, "ccot-gw": CCOTGW, "transport": TransportCoclustering}


@pytest.mark.parametrize("case", CASES)
def test_memory_is_right_within_a_factor_of_two_and_time_within_ten(case):
    method, shape, how = CASES[case]
    sigma = 1.0 if method == "transport" else 0.01
    make = make_latent_blocks(MEANS, *shape, sigma=sigma, random_state=0)
    model = ESTIMATORS[method](random_state=0, **how)
    expected = estimate(shape, method=method, **how)
    # Processor time: others on the machine do not lengthen it.
    start = time.process_time()
    model.fit(make.data)
    seconds = time.process_time() - start
    tracemalloc.start()
    try:
        model.fit(make.data.copy())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert expected.memory_bytes / 2 < peak < expected.memory_bytes * 2
    assert expected.seconds / 10 < seconds < expected.seconds * 10


def test_sparse_matrices_cost_by_their_entries():
    X = sp.random_array(
        (4000, 1000), density=0.05, random_state=np.random.default_rng(0), format="csr"
    )
    X.data = np.ceil(3 * X.data)
    expected = estimate(X.shape, X.nnz, "transport")
    assert expected.memory_bytes < estimate(X.shape, None, "transport").memory_bytes / 4
    tracemalloc.start()
    try:
        TransportCoclustering(random_state=0).fit(X.copy())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert expected.memory_bytes / 2 < peak < expected.memory_bytes * 2


@pytest.mark.parametrize("method", resources.METHODS)
def test_more_takes_more(method):
    small, tall, wide = (estimate(s, method=method) for s in ((500, 200), (5000, 200), (500, 2000)))
    for large in (tall, wide):
        assert large.memory_bytes > small.memory_bytes
        assert large.seconds > small.seconds


def test_out_of_core_memory_does_not_grow_with_the_matrix():
    million, hundred = (
        estimate((n_rows, 100), method="ccot", out_of_core=True) for n_rows in (10**6, 10**8)
    )
    assert hundred.memory_bytes < 1.1 * million.memory_bytes < 1e9
    assert hundred.seconds > 10 * million.seconds


def test_out_of_core_blocks_are_a_sample_and_a_little_for_each_row(monkeypatch):
    assert estimate((10**7, 1000), out_of_core=True).memory_bytes < 2e9
    more = [estimate((n_rows, 1000), out_of_core=True) for n_rows in (10**7, 2 * 10**7)]
    assert more[1].memory_bytes - more[0].memory_bytes == pytest.approx(6e8, rel=0.01)
    assert more[1].seconds > 1.5 * more[0].seconds
    monkeypatch.setattr(streaming, "POOL_ENTRIES", 2**16)
    X = make_latent_blocks(MEANS, 30_000, 20, sigma=1.0, random_state=0).data
    source = FunctionSource(lambda first, last: X[first:last], X.shape)
    expected = estimate(X.shape, out_of_core=True)
    tracemalloc.start()
    try:
        TransportCoclustering(random_state=0, criterion="jump").fit(source)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert expected.memory_bytes / 2 < peak < 2 * expected.memory_bytes


def test_threads_share_the_time():
    one, two = (estimate((10**6, 100), method="ccot", n_jobs=n_jobs) for n_jobs in (1, 2))
    assert two.seconds == pytest.approx(one.seconds / 2)


def test_advice_names_the_way_out(monkeypatch):
    monkeypatch.setattr(resources, "free_bytes", lambda: 10**9)
    assert "1.0 GB are free: pass n_support" in estimate((10**5, 10), method="ccot-gw").advice
    assert "pass the path of the file" in estimate((10**6, 10**4)).advice
    assert "times as long if draws disagree" in estimate((500, 100), method="ccot").advice
    assert estimate((500, 100), method="ccot", n_samplings=5).advice == ""


def test_estimates_can_be_read():
    one = resources.Estimate(2_500_000, 0.2, "")
    assert str(one) == "about 2 MB and 1 s"
    assert str(replace(one, memory_bytes=3 * 10**9, seconds=150.0)) == "about 3.0 GB and 2 min"
    assert str(replace(one, seconds=36_000.0, advice="wait")) == "about 2 MB and 10 h; wait"


def test_bad_requests_are_named():
    with pytest.raises(ValueError, match="unknown method 'kmeans': choose one of ccot"):
        estimate((5, 5), method="kmeans")
    with pytest.raises(ValueError, match="two positive numbers"):
        estimate((0, 5))
