"""``ccot serve``: a recommender behind HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

# Workers are processes of their own: what they serve reaches them through the environment.
_MODEL = "CCOT_SERVE_MODEL"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


def serve(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file of `ccot fit-ratings`.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    log_level: Annotated[str, typer.Option(help="How much to say: info, warning, error.")] = (
        "warning"
    ),
) -> None:
    """Serve labels, recommendations and explanations over HTTP; /docs describes them.

    For example:

    - `ccot serve ratings.ccot --port 8080 --workers 4`
    """
    # A model that cannot be served is better refused here than in every worker.
    load_app(model)
    import uvicorn

    os.environ[_MODEL] = str(model)
    typer.echo(f"serving {model} on http://{host}:{port} (stop with Ctrl+C)")
    uvicorn.run(
        "ccot.cli.serve:app_of_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_level=log_level,
        access_log=log_level == "info",
    )


def load_app(model: Path) -> Any:
    """Return the application that serves a model file."""
    from ccot.recommend import load_recommender
    from ccot.recommend.service import make_app

    return make_app(load_recommender(model))


def app_of_environment() -> Any:
    """Return the application of the model that the environment names."""
    return load_app(Path(os.environ[_MODEL]))
