"""What ``asv`` times: seconds, peak memory and ratio to the reference of every operation."""

import warnings

from threadpoolctl import threadpool_limits

from .cases import OPERATIONS
from .measure import measure

BY_NAME = {one.name: one for one in OPERATIONS}


class Operations:
    """One operation of ours."""

    params = tuple(BY_NAME)
    param_names = ("operation",)
    timeout = 300
    version = "1"

    def setup(self, name):
        self.limits = threadpool_limits(1)
        warnings.simplefilter("ignore")
        BY_NAME[name].ours()

    def teardown(self, name):
        self.limits.unregister()

    def time_operation(self, name):
        BY_NAME[name].ours()

    def peakmem_operation(self, name):
        BY_NAME[name].ours()


class Ratios(Operations):
    """One operation of ours over the reference, in turns."""

    time_operation = peakmem_operation = None

    def track_ratio(self, name):
        return measure(BY_NAME[name], 5)["ratio"]

    track_ratio.unit = "times the reference"
