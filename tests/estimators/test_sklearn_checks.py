from sklearn.utils.estimator_checks import parametrize_with_checks

from ccot import CCOT, CCOTGW, TransportCoclustering

# Whatever has predict_proba for sparse rows is taken for a classifier of four classes there.
CLASSIFIERS = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")


def expected_to_fail(estimator):
    return dict.fromkeys(CLASSIFIERS if hasattr(estimator, "predict_proba") else (), "a clusterer")


@parametrize_with_checks(
    [CCOT(), CCOTGW(), TransportCoclustering()], expected_failed_checks=expected_to_fail
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)
