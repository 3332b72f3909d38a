"""Co-clustering through optimal transport: blocks of rows and columns, found and counted."""

from ccot._version import __version__
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.models import load_model
from ccot.estimators.transport import TransportCoclustering
from ccot.resources import estimate
from ccot.scalings.jumps import detect_jumps

__all__ = [
    "CCOT",
    "CCOTGW",
    "TransportCoclustering",
    "__version__",
    "detect_jumps",
    "estimate",
    "load_model",
]
