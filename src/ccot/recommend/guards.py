"""Middleware of the service: limits on bodies, a token, counts of requests."""

import asyncio
import hmac
import time
from collections import Counter
from typing import Any

from starlette.requests import ClientDisconnect, Request

from ccot.recommend.messages import AsciiResponse

MAX_BODY = 1 << 18
# Seconds within which the whole of a body has to arrive.
BODY_SECONDS = 10.0
# Asked by monitors, which have no token; and the page, in which one is entered.
_OPEN = ("/health", "/ready", "/", "/docs")
_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)


class LimitBody:
    """Refuses bodies that are too large or too slow, however they are sent."""

    def __init__(self, app: Any, limit: int = MAX_BODY, seconds: float = BODY_SECONDS) -> None:
        self._app, self._limit, self._seconds = app, limit, seconds

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body, then pass it to the application."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body, refusal = b"", None
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in Request(scope, receive).stream():
                    body += chunk
                    if len(body) > self._limit:
                        refusal = 413, f"the body is larger than {self._limit} bytes"
                        break
        except ClientDisconnect:
            return
        except TimeoutError:
            refusal = 408, "the body did not arrive in time"
        except asyncio.CancelledError:
            # The server cancels what is still under way when it has waited long enough to stop.
            refusal = 503, "the service is stopping"
        if refusal is not None:
            return await _refuse(*refusal, scope, receive, send)
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def read_again() -> Any:
            return unread.pop() if unread else await receive()

        await self._app(scope, read_again, send)


class RequireToken:
    """Refuses requests without ``Authorization: Bearer TOKEN``; health and readiness are open."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._expected = app, b"Bearer " + token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on requests with the token."""
        if scope["type"] == "http" and scope["path"] not in _OPEN:
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                bearer = {"WWW-Authenticate": "Bearer"}
                return await _refuse(401, "pass a token", scope, receive, send, headers=bearer)
        await self._app(scope, receive, send)


class CountRequests:
    """Counts requests and seconds by path and status, for Prometheus; unknown paths as one."""

    def __init__(self, app: Any, paths: frozenset[str], counts: "RequestCounts") -> None:
        self._app, self._paths, self._counts = app, paths, counts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on and count its answer."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        start, status = time.perf_counter(), 499  # of a client who did not wait for an answer

        async def note_status(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        except Exception:  # whatever it is, the server answers it further out, with 500
            status = 500 if status == 499 else status
            raise
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._counts.add(path, status, time.perf_counter() - start)


class RequestCounts:
    """Numbers and durations of requests, since the process started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds, self._within = 0.0, Counter[float]()

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests[path, status] += 1
        self._seconds += seconds
        self._within.update(bound for bound in _BUCKETS if seconds <= bound)

    def text(self) -> str:
        """Return the counts in Prometheus' text format."""
        total = self._requests.total()
        requests = (
            f'ccot_requests_total{{path="{path}",status="{status}"}} {number}'
            for (path, status), number in sorted(self._requests.items())
        )
        within = (f'ccot_request_seconds_bucket{{le="{b}"}} {self._within[b]}' for b in _BUCKETS)
        lines = [
            "# TYPE ccot_requests_total counter", *requests,
            "# TYPE ccot_request_seconds histogram", *within,
            f'ccot_request_seconds_bucket{{le="+Inf"}} {total}',
            f"ccot_request_seconds_sum {self._seconds:.6g}",
            f"ccot_request_seconds_count {total}\n",
        ]  # fmt: skip
        return "\n".join(lines)


async def _refuse(status: int, reason: str, *asgi: Any, headers: Any = None) -> None:
    await AsciiResponse({"detail": reason}, status_code=status, headers=headers)(*asgi)
