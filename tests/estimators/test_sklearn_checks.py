import pytest
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from ccot import CCOT, CCOTGW, TransportCoclustering


@parametrize_with_checks([CCOT(), CCOTGW(), TransportCoclustering()])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [CCOT, CCOTGW, TransportCoclustering])
def test_parameters_and_their_ranges_have_the_same_names(kind):
    check_param_validation(kind.__name__, kind())
