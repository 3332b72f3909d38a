"""CCOT-GW and its detector against the authors' program, number by number."""

import csv

import numpy as np
import pytest

import ccot.scalings.ccot_gw
from ccot import CCOTGW, detect_jumps
from ccot.datasets import make_latent_blocks
from ccot.metrics import coclustering_error
from ccot.transport.gromov import LOSSES, Limits, gromov_barycentre, refine
from tests.golden.cases import (
    DATA,
    RUN_NAMES,
    TRACE_NAMES,
    load_jump_cases,
    load_run,
    load_trace,
)
from tests.transport.alignment import align

JUMP_CASES = load_jump_cases()
with (DATA / "detection_50seeds.csv").open() as table:
    OTHER_SEEDS = list(csv.DictReader(table))


def assert_same_up_to_a_factor(log_scaling, golden, rtol):
    """Compare scalings, each divided by its mean."""
    scaling = np.exp(log_scaling - log_scaling.max())
    np.testing.assert_allclose(scaling / scaling.mean(), golden / golden.mean(), rtol=rtol)


def authors_labels(labels, n_clusters):
    """Name clusters as the authors do: from 1, and all 0 where there is but one."""
    return labels + 1 if n_clusters > 1 else labels


def assert_same_run(model, stored, rtol):
    assert_same_up_to_a_factor(model.row_log_scaling_, stored["beta_rows"], rtol)
    assert_same_up_to_a_factor(model.column_log_scaling_, stored["beta_cols"], rtol)
    np.testing.assert_array_equal(model.row_jumps_, stored["jumps_rows"])
    np.testing.assert_array_equal(model.column_jumps_, stored["jumps_cols"])
    assert model.n_row_clusters_ == len(stored["jumps_rows"]) + 1
    assert model.n_column_clusters_ == len(stored["jumps_cols"]) + 1


@pytest.fixture
def barycentres(monkeypatch):
    """Every barycentre that a fit computes, which the estimator does not keep."""
    seen = []

    def spy(*arguments, **options):
        seen.append(gromov_barycentre(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(ccot.scalings.ccot_gw, "gromov_barycentre", spy)
    return seen


def run_marks(name):
    # The two largest sets take long; one of their runs stands for them in every test run.
    large = name.startswith(("D1", "D2")) and name != "D1_s0_g1_kl"
    return pytest.param(name, marks=pytest.mark.slow) if large else name


@pytest.mark.parametrize("name", [run_marks(name) for name in RUN_NAMES])
def test_run_is_the_authors(name, barycentres):
    run = load_run(name)
    model = CCOTGW(reg=run.reg, loss=run.loss, detector="authors").fit(run.matrix)

    assert_same_run(model, run.stored, rtol=1e-8)
    np.testing.assert_array_equal(
        authors_labels(model.row_labels_, model.n_row_clusters_), run.row_labels
    )
    np.testing.assert_array_equal(
        authors_labels(model.column_labels_, model.n_column_clusters_), run.column_labels
    )

    (answer,) = barycentres
    assert answer.support.shape == tuple(run.stored["Kbary_shape"])
    np.testing.assert_allclose(answer.support.mean(), run.stored["Kbary_mean"], rtol=1e-8)
    np.testing.assert_allclose(np.trace(answer.support), run.stored["Kbary_trace"], rtol=1e-4)
    assert model.n_iter_ == len(run.stored["alternating_objective"])
    np.testing.assert_allclose(
        answer.objective, run.stored["alternating_objective"], rtol=1e-7, atol=1e-12
    )


@pytest.mark.parametrize("name", TRACE_NAMES)
def test_every_intermediate_is_the_authors(name):
    run, trace = load_run(name), load_trace(name)
    rule, limits = LOSSES[run.loss], Limits()
    similarities = [trace["K_rows"], trace["K_cols"]]
    support = trace["K_rows"]
    for update in range(1, len(trace["objective"]) + 1):
        for side, kernel in zip(("rows", "cols"), similarities, strict=True):
            golden = {
                key: trace[f"alt{update}_{side}_{key}"]
                for key in (
                    "scaling_data_side",
                    "scaling_bary_side",
                    "coupling_entropic",
                    "coupling_refined",
                    "gw_values_entropic",
                    "gw_values_refined",
                )
            }
            alignment = align(kernel, support, run.reg, rule, limits)
            assert_same_up_to_a_factor(alignment.log_row, golden["scaling_data_side"], 1e-12)
            assert_same_up_to_a_factor(alignment.log_column, golden["scaling_bary_side"], 1e-12)
            np.testing.assert_allclose(
                alignment.coupling, golden["coupling_entropic"], rtol=1e-12, atol=0
            )
            assert alignment.value == pytest.approx(golden["gw_values_entropic"][-1], rel=1e-12)
            refined, value = refine(kernel, support, alignment.coupling, rule, limits)
            assert value == pytest.approx(golden["gw_values_refined"][-1], rel=1e-10)
            # The exact problem of `mid` has a tie: another vertex is as good.
            if not name.startswith("mid"):
                np.testing.assert_allclose(refined, golden["coupling_refined"], atol=1e-15)
        # Go on from the authors' barycentre, so that every update is tested on its own.
        support = trace[f"alt{update}_Kbary_after"]


@pytest.mark.parametrize(
    ("values", "positions", "labels"),
    [case[1:] for case in JUMP_CASES],
    ids=[case[0] for case in JUMP_CASES],
)
def test_detector_is_the_authors(values, positions, labels):
    found = detect_jumps(values, method="authors")
    np.testing.assert_array_equal(found, positions)
    steps = np.searchsorted(found, np.arange(len(values)), side="right")
    np.testing.assert_array_equal(authors_labels(steps, len(found) + 1), labels)


def other_seeds():
    for case in OTHER_SEEDS:
        large = case["set"] in ("D1", "D2")
        if int(case["seed"]) > (1000 if large else 1004):
            continue
        quick = case["set"] in ("demo", "D3", "D4") and case["seed"] == "1000"
        name = "-".join(case[key] for key in ("set", "seed", "gamma", "loss"))
        yield pytest.param(case, marks=() if quick else pytest.mark.slow, id=name)


# With little entropy the authors' limit of 100 iterations is too low, and we say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", list(other_seeds()))
def test_other_seeds_give_the_authors_numbers(case):
    kin = load_run(f"{case['set'].removesuffix('eq')}_s0_g1_l2")
    blocks = make_latent_blocks(
        kin.stored["mu"],
        *kin.matrix.shape,
        row_proportions=kin.stored["prop_rows"],
        column_proportions=None if case["set"].endswith("eq") else kin.stored["prop_cols"],
        sigma=float(kin.stored["sigma_noise"]),
        random_state=int(case["seed"]),
    )
    loss = "square" if case["loss"] == "l2" else case["loss"]
    model = CCOTGW(reg=float(case["gamma"]), loss=loss, detector="authors").fit(blocks.data)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (int(case["g"]), int(case["m"]))
    if case["cce"]:  # the authors' error has no value where a number is wrong
        error = coclustering_error(
            blocks.row_labels, blocks.column_labels, model.row_labels_, model.column_labels_
        )
        assert error == pytest.approx(float(case["cce"]), abs=1e-11)


@pytest.fixture
def movielens(data_home):
    """Ratings, zero where there is none, and what the authors' program made of them."""
    ratings, golden = data_home / "ml-100k" / "u.data", data_home.parent / "golden"
    for path in (ratings, golden / "movielens_g1_kl.npz"):
        if not path.is_file():
            pytest.skip(f"no {path.name} at {path.parent}: the repository does not ship it")
    user, movie, rating, _ = np.loadtxt(ratings, dtype=np.int64).T
    matrix = np.zeros((943, 1682))
    matrix[user - 1, movie - 1] = rating
    with np.load(golden / "movielens_g1_kl.npz", allow_pickle=False) as stored:
        return matrix, dict(stored)


@pytest.mark.slow
def test_movielens_has_the_blocks_of_the_paper(movielens):
    matrix, stored = movielens
    assert matrix.sum() == stored["X_sum"]
    model = CCOTGW(reg=1, loss="kl", detector="authors").fit(matrix)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (9, 15)
    assert_same_run(model, stored, rtol=1e-7)
    np.testing.assert_array_equal(model.row_labels_ + 1, stored["z_out"])
    np.testing.assert_array_equal(model.column_labels_ + 1, stored["w_out"])
