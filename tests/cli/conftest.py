from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot.cli import app
from ccot.datasets import make_latent_blocks


@pytest.fixture
def ccot(tmp_path, monkeypatch):
    """Run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=None, code=0):
        outcome = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
        if outcome.exit_code != code and outcome.exception:
            print(outcome.output)
            raise outcome.exception
        assert outcome.exit_code == code, outcome.output
        return outcome

    return run


@pytest.fixture(scope="session")
def blocks():
    """A small matrix with plain blocks, and names."""
    values = make_latent_blocks([[1, 5, 9], [6, 1, 3]], 40, 30, sigma=0.3, random_state=0).data
    return SimpleNamespace(
        values=values,
        rows=[f"gene_{place}" for place in range(40)],
        columns=[f"s{place}" for place in range(30)],
    )


@pytest.fixture
def table(blocks, tmp_path):
    """The same as a CSV file."""
    path = tmp_path / "genes.csv"
    lines = [",".join(["gene", *blocks.columns])]
    lines += [
        ",".join([name, *map(repr, row.tolist())])
        for name, row in zip(blocks.rows, blocks.values, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def model_file(blocks, tmp_path_factory):
    """A fitted model with names, saved."""
    from ccot import TransportCoclustering

    model = TransportCoclustering(random_state=0).fit(blocks.values)
    model.feature_names_in_ = np.array(blocks.columns, dtype=object)
    model.row_names_in_ = np.array(blocks.rows, dtype=object)
    return model.save(tmp_path_factory.mktemp("model") / "model.ccot")
