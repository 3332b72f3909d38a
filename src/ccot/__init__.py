"""Co-clustering through optimal transport: blocks of rows and columns, found and counted."""

from typing import TYPE_CHECKING, Any

from ccot._version import __version__
from ccot.runtime.lazy import load_when_used

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

_load, __dir__ = load_when_used(
    __name__,
    {
        "CCOT": "ccot.estimators.ccot",
        "CCOTGW": "ccot.estimators.ccot_gw",
        "TransportCoclustering": "ccot.estimators.transport",
        "detect_jumps": "ccot.scalings.jumps",
        "estimate_resources": "ccot.resources",
        "load_model": "ccot.estimators.models",
    },
    ("baselines", "datasets", "io", "metrics", "plotting", "recommend", "report"),
)
_RENAMED = {"estimate": "estimate_resources"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        import warnings

        message = f"ccot.{name} is now called ccot.{_RENAMED[name]}; the old name will go"
        warnings.warn(message, FutureWarning, stacklevel=2)
    return _load(_RENAMED.get(name, name))
