"""``ccot serve``: a recommender behind HTTP."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from ccot.cli.options import Ratings

_LOOPBACK = ("localhost", "127.0.0.1", "::1")

LogLevel = StrEnum("LogLevel", ["critical", "error", "warning", "info", "debug"])


def serve(
    model: Ratings,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, Option(min=1, max=256, help="Processes.")] = 1,
    log_level: Annotated[LogLevel, Option(help="How much to log.")] = LogLevel.warning,
    allow_host: Annotated[
        list[str] | None,
        Option(
            help="A name by which the service may be called; once for each. By default those of "
            "this machine where it listens to this machine only, else all."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        Option(help="File with a token that requests must bring: Authorization: Bearer."),
    ] = None,
) -> None:
    """Serve labels, recommendations and explanations over HTTP; /docs describes them.

    For example:

    - `ccot serve ratings.ccot --port 8080 --workers 4`
    - `ccot serve ratings.ccot --host 0.0.0.0 --allow-host films.example.org --token-file token`
    """
    try:
        from ccot.recommend.server import Service, load_app, run_service
    except ImportError as missing:
        raise ImportError(
            "the service needs FastAPI and uvicorn: pip install 'ccot[serve]'"
        ) from missing

    hosts = allow_host or (_LOOPBACK if host in _LOOPBACK else ("*",))
    service = Service(str(model), ",".join(hosts), str(token_file or ""))
    # A model that cannot be served is refused here, not in every worker.
    load_app(service)
    typer.echo(f"serving {model} on http://{host}:{port} (stop with Ctrl+C)")
    run_service(service, host=host, port=port, workers=workers, log_level=str(log_level))
