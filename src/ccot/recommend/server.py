"""The process that serves: uvicorn with limits on connections, on slow clients and on shutdown."""

import json
import logging
import os
import socket
from dataclasses import asdict, dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ccot.io.isolated.limits import end_with_parent

# Seconds: for the head of a request to arrive, for the next request on a connection, for
# requests under way once the service is stopping; for a worker to load its model.
_HEAD_SECONDS, _IDLE_SECONDS, _STOP_SECONDS, _LOAD_SECONDS = 10.0, 5, 5, 120
_MAX_CONNECTIONS, _MAX_HEAD, _LONGEST_LINE = 400, 1 << 14, 400
# Connections that are taken before the number is looked at again.
_BACKLOG = 64
# Workers are processes of their own: what they serve reaches them through the environment.
_VARIABLE = "CCOT_SERVICE"


@dataclass(frozen=True)
class Service:
    """What is served, and to whom, as the environment of a worker holds it."""

    model: str
    hosts: str = "*"  # by which the service may be called, with commas between; * allows all
    token_file: str = ""  # empty: no token is needed
    parent: int = 0  # process whose end ends the workers; 0: none


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn that closes connections beyond a number and heads that do not arrive."""

    _timer: Any = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or close it at once where there are too many."""
        super().connection_made(transport)
        if len(self.connections) > _MAX_CONNECTIONS:
            transport.abort()
            return
        self._timer = self.loop.call_later(_HEAD_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Read; the clock runs from the first byte of a head to its last."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def run_service(service: Service, *, host: str, port: int, workers: int, log_level: str) -> None:
    """Serve until the process is asked to end; the address has been checked."""
    if workers > 1:
        service = replace(service, parent=os.getpid())
    os.environ[_VARIABLE] = json.dumps(asdict(service))
    # A worker may take long to load on a busy machine; older versions of uvicorn have no limit.
    patient: dict[str, Any] = {"timeout_worker_healthcheck": _LOAD_SECONDS}
    known = signature(uvicorn.run).parameters
    uvicorn.run(
        f"{__name__}:app_of_environment", factory=True, host=host, port=port, workers=workers,
        http=LimitedProtocol, ws="none", log_level=log_level, access_log=log_level == "info",
        backlog=_BACKLOG, timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS, h11_max_incomplete_event_size=_MAX_HEAD,
        server_header=False,
        **{name: value for name, value in patient.items() if name in known},
    )  # fmt: skip


def load_app(service: Service) -> Any:
    """Return the application of a service."""
    from ccot.recommend.persist import load_recommender
    from ccot.recommend.service import make_app

    path = service.token_file
    token = Path(path).read_text(encoding="utf-8", errors="replace").strip() if path else None
    if token is not None and not (token and token.isascii() and token.isprintable()):
        raise ValueError(f"{path} must contain a token of printable ASCII characters")
    return make_app(load_recommender(service.model), hosts=service.hosts.split(","), token=token)


def app_of_environment() -> Any:
    """Return the application that the environment names; it ends with its parent."""
    service = Service(**json.loads(os.environ[_VARIABLE]))
    for name in ("asyncio", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).addFilter(_shorten)
    if service.parent:
        end_with_parent(service.parent)
    return load_app(service)


def check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, before anything is started."""
    if not host:
        raise ValueError("--host is empty: pass an address, or 0.0.0.0 for all of this machine")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no such host"
        raise ValueError(
            f"cannot listen on {host}, port {port} ({reason}): choose another --host or --port"
        ) from None


def _shorten(record: logging.LogRecord) -> bool:
    """Cut an entry of the log to one short line; a filter that lets every record pass."""
    if record.name == "asyncio":
        record.exc_info = None
    line = record.getMessage()
    if len(line) > _LONGEST_LINE:
        record.msg, record.args = line[:_LONGEST_LINE] + "...", ()
    return True
