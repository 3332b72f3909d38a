from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.baselines.rivals import RIVALS


@parametrize_with_checks([rival(n_init=2) for rival in RIVALS])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)
