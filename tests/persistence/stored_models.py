"""Model files of earlier releases, kept to be read for ever.

``python -m tests.persistence.stored_models`` writes those of the format at hand. After a release
its files stay as they are: a value that gets a field gives it a default, and a change that no
default can bridge raises ``ccot.persistence.model_file.VERSION``.
"""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ccot import CCOT, CCOTGW, TransportCoclustering
from ccot.datasets import make_latent_blocks
from ccot.persistence.model_file import VERSION

FOLDER = Path(__file__).parent / "data"
X = make_latent_blocks([[1, 5, 9], [6, 1, 3]], 24, 18, sigma=0.1, random_state=0).data.round(3)
COUNTS = sp.csr_array(np.random.default_rng(0).poisson(np.abs(X) / 2))
MODELS = {
    "ccot": (lambda: CCOT(2, 3, random_state=0).fit(X), X),
    "ccot-gw": (lambda: CCOTGW(2, 3).fit(X), X),
    "transport": (lambda: TransportCoclustering(2, 3, random_state=0).fit(X), X),
    "transport-counts": (lambda: TransportCoclustering(2, 3, random_state=0).fit(COUNTS), COUNTS),
}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, (fit, points) in MODELS.items():
        model = fit()
        path = model.save(FOLDER / f"{name}-v{VERSION}.ccot")
        expected = {
            "rows": model.predict(points).tolist(),
            "columns": model.predict_columns(points.T).tolist(),
            "summary": model.summary(),
        }
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
