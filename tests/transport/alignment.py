"""One alignment on its own, as tests need it."""

from ccot.transport.gromov import _align, _mean, _mean_f1


def align(kernel, support, reg, rule, limits):
    """Align a similarity with a support by entropic Gromov-Wasserstein, from the product start."""
    side = rule.h2(support)
    constant = _mean_f1(kernel, rule) + _mean(rule.f2(support))
    return _align(kernel, side, constant, reg, limits, products=False)
