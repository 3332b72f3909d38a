import numpy as np

from ccot.transport.sinkhorn import extend_scaling, sinkhorn


def test_fitted_points_get_their_own_scaling_back():
    log_kernel = -np.random.default_rng(0).uniform(0, 50, size=(12, 9))
    answer = sinkhorn(log_kernel, tol=1e-13, max_iter=10_000)
    np.testing.assert_allclose(
        extend_scaling(log_kernel, answer.log_column, 1 / 12), answer.log_row, atol=1e-10
    )
    np.testing.assert_allclose(
        extend_scaling(log_kernel.T, answer.log_row, 1 / 9), answer.log_column, atol=1e-10
    )


def test_far_points_have_finite_scalings():
    log_kernel = np.array([[-1e6, -1e6 - 3.0], [0.0, -1e300]])
    scaling = extend_scaling(log_kernel, np.array([0.0, 700.0]), 0.5)
    np.testing.assert_allclose(scaling, [np.log(0.5) + 1e6 - 697, np.log(0.5)])


def test_a_batch_gives_what_its_members_give():
    log_kernel = -np.random.default_rng(0).uniform(0, 5, size=(3, 4, 6))
    log_anchor_scaling = np.linspace(0, 1, 6)
    together = extend_scaling(log_kernel, log_anchor_scaling, 0.5)
    alone = [extend_scaling(member, log_anchor_scaling, 0.5) for member in log_kernel]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_points_of_no_cost_to_all_anchors_share_the_mass():
    np.testing.assert_array_equal(extend_scaling(np.zeros((1, 4)), np.zeros(4), mass=4.0), [0.0])
