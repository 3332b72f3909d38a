from sklearn.utils.estimator_checks import parametrize_with_checks

from ccot import CCOT, CCOTGW, TransportCoclustering


@parametrize_with_checks([CCOT(), CCOTGW(), TransportCoclustering()])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)
