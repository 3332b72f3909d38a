import numpy as np
import pytest
from scipy.stats import bernoulli, norm, poisson

from ccot.blocks.families import FAMILIES

# Block statistics away from the edges, so that smoothing changes little.
TOTAL = np.array([[300.0, 100.0], [250.0, 550.0]])
EXPOSURE = np.array([[1000.0, 900.0], [800.0, 700.0]])
MEAN = TOTAL / EXPOSURE


@pytest.mark.parametrize(
    ("name", "natural", "cumulant"),
    [
        ("gaussian", MEAN, MEAN**2 / 2),
        ("poisson", np.log(MEAN), MEAN),
        ("bernoulli", np.log(MEAN / (1 - MEAN)), -np.log(1 - MEAN)),
    ],
)
def test_terms_are_natural_parameters_and_cumulants(name, natural, cumulant):
    # A family smoothed towards the overall mean does not move where it is that mean already.
    for block in np.ndindex(2, 2):
        found = FAMILIES[name].terms(TOTAL, EXPOSURE, float(MEAN[block]))
        assert found[0][block] == pytest.approx(natural[block], rel=1e-12)
        assert found[1][block] == pytest.approx(cumulant[block], rel=1e-12)


def test_information_is_the_maximised_likelihood(family):
    """The likelihood at the block's own mean, and no other mean has more."""
    law = FAMILIES[family]
    held = law.information(TOTAL, EXPOSURE)
    for shift in (0.9, 0.99, 1.0, 1.01, 1.1):
        mean = MEAN * shift
        natural, cumulant = law.terms(1e12 * mean, np.full((2, 2), 1e12), 0.5)
        likelihood = TOTAL * natural - EXPOSURE * cumulant
        if shift == 1.0:
            # Poisson leaves its constant out: totals are the same for every co-clustering.
            constant = TOTAL if family == "poisson" else 0.0
            np.testing.assert_allclose(likelihood + constant, held, rtol=1e-9)
            best = likelihood
    for shift in (0.9, 0.99, 1.01, 1.1):
        natural, cumulant = law.terms(1e12 * MEAN * shift, np.full((2, 2), 1e12), 0.5)
        assert (TOTAL * natural - EXPOSURE * cumulant < best).all()


def test_differences_of_gain_are_those_of_textbook_likelihoods(family):
    values = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    one, other = 0.3, 0.6
    law = FAMILIES[family]

    def gain(mean):
        natural, cumulant = law.terms(np.array([1e12 * mean]), np.array([1e12]), 0.5)
        return float(values.sum() * natural[0] - len(values) * cumulant[0])

    density = {
        "gaussian": lambda mean: norm.logpdf(values, mean, 1.0),
        "poisson": lambda mean: poisson.logpmf(values, mean),
        "bernoulli": lambda mean: bernoulli.logpmf(values, mean),
    }[family]
    expected = density(one).sum() - density(other).sum()
    assert gain(one) - gain(other) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("total", [0.0, 20.0])
def test_blocks_at_the_edge_of_the_range_have_finite_terms(family, total):
    natural, cumulant = FAMILIES[family].terms(np.array([total]), np.array([20.0]), 0.4)
    assert np.isfinite([natural, cumulant]).all()
    assert np.isfinite(FAMILIES[family].information(np.array([total]), np.array([20.0]))).all()


@pytest.mark.parametrize("overall", [0.0, 1.0])
def test_matrices_of_one_value_have_finite_terms(family, overall):
    assert np.isfinite(
        FAMILIES[family].terms(np.array([20 * overall]), np.array([20.0]), overall)
    ).all()


def test_blocks_of_little_exposure_hold_something():
    little = np.array([0.25]), np.array([0.5])
    assert FAMILIES["gaussian"].information(*little) == pytest.approx(0.0625)
    assert FAMILIES["poisson"].information(*little) == pytest.approx(0.25 * np.log(0.5))
    assert FAMILIES["bernoulli"].information(*little) == pytest.approx(0.5 * np.log(0.5))


def test_rounding_beyond_the_range_holds_nothing():
    total, exposure = np.array([-1e-17, 3.0 + 1e-15]), np.array([3.0, 3.0])
    held = FAMILIES["bernoulli"].information(total, exposure)
    np.testing.assert_allclose(held, 0, atol=1e-12)


def test_empty_blocks_hold_nothing(family):
    assert FAMILIES[family].information(np.zeros(1), np.zeros(1)) == 0
    assert np.isfinite(FAMILIES[family].terms(np.zeros(1), np.zeros(1), 0.0)).all()
