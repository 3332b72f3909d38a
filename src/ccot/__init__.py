"""Co-clustering through optimal transport: blocks of rows and columns, found and counted."""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ccot._version import __version__

if TYPE_CHECKING:
    from ccot.estimators.ccot import CCOT
    from ccot.estimators.ccot_gw import CCOTGW
    from ccot.estimators.models import load_model
    from ccot.estimators.transport import TransportCoclustering
    from ccot.resources import estimate_resources
    from ccot.scalings.jumps import detect_jumps

__all__ = [
    "CCOT",
    "CCOTGW",
    "TransportCoclustering",
    "__version__",
    "detect_jumps",
    "estimate_resources",
    "load_model",
]

_MODULES = {
    "CCOT": "ccot.estimators.ccot",
    "CCOTGW": "ccot.estimators.ccot_gw",
    "TransportCoclustering": "ccot.estimators.transport",
    "detect_jumps": "ccot.scalings.jumps",
    "estimate_resources": "ccot.resources",
    "load_model": "ccot.estimators.models",
}
_PACKAGES = ("baselines", "datasets", "io", "metrics", "plotting", "recommend", "report")


def __getattr__(name: str) -> Any:
    # Loaded when first used: importing the package alone takes no time.
    if name in _PACKAGES:
        return import_module(f"ccot.{name}")
    if name == "estimate":
        message = "ccot.estimate is now called ccot.estimate_resources; the old name will go"
        warnings.warn(message, FutureWarning, stacklevel=2)
        name = "estimate_resources"
    if name not in _MODULES:
        raise AttributeError(f"module 'ccot' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_PACKAGES})
