"""A recommender behind HTTP: labels, recommendations and explanations for users old and new."""

# Annotations are read when routes are made, so they must not be turned into text.
# pyright: reportInvalidTypeForm=false
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

try:
    from fastapi import FastAPI, HTTPException, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, PlainTextResponse
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware.trustedhost import TrustedHostMiddleware
except ImportError as missing:
    raise ImportError("services need FastAPI and uvicorn: pip install 'ccot[serve]'") from missing

from ccot._version import __version__
from ccot.recommend import messages
from ccot.recommend.guards import CountRequests, LimitBody, RequestCounts, RequireToken
from ccot.recommend.names import NameIndex, UnknownNameError
from ccot.recommend.recommender import BlockRecommender
from ccot.recommend.values import User

_MOST_FOUND, _PAGE = 20, resources.files("ccot.recommend") / "page.html"
# Pages speak to this service only, and no other page shows them.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
_ALONE = {"Content-Security-Policy": f"{_POLICY}; connect-src 'self'; frame-ancestors 'none'"}
# Which of the bodies that a question may have, in the place of a fault.
_KIND = re.compile(r"(?<=^body)\.(Of|Visitor|User)[A-Za-z]+")


def make_app(
    model: BlockRecommender, *, hosts: Sequence[str] = ("*",), token: str | None = None
) -> FastAPI:
    """Return the service of one recommender, for requests whose ``Host`` is among the hosts."""
    users = NameIndex(model.user_names_, "user", model.user_ids_)
    items = NameIndex(model.item_names_, "item", model.item_ids_)
    # Made now, so that the first unknown name does not wait for it.
    _ = users.letters, items.letters
    app = FastAPI(
        title="ccot recommender",
        version=__version__,
        default_response_class=messages.AsciiResponse,
        description="Groups of users, recommended items, and reasons, from a co-clustering.",
        # FastAPI's own pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=_note_stop,
    )
    app.state.ready = True
    _add_questions(app, model, users, items)
    _add_search(app, "users", users, "ann")
    _add_search(app, "items", items, "star")
    counts = RequestCounts()
    _add_monitoring(app, model, counts)
    # Starlette's types know neither handlers of one error nor classes without its base.
    app.add_exception_handler(RequestValidationError, _name_faults)  # type: ignore[arg-type]
    # The last one added is the first to see a request.
    app.add_middleware(LimitBody)  # type: ignore[arg-type]
    if token is not None:
        app.add_middleware(RequireToken, token=token)  # type: ignore[arg-type]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    paths = frozenset(getattr(route, "path", "") for route in app.routes)
    app.add_middleware(CountRequests, paths=paths, counts=counts)  # type: ignore[arg-type]
    return app


def _add_questions(
    app: FastAPI, model: BlockRecommender, users: NameIndex, items: NameIndex
) -> None:
    """Add what is asked about a user: label, recommendations, and where a rating comes from."""
    called, titles = model.user_names_, model.item_names_
    bodies = messages.request_types(*model.rating_range_, called[0], titles[0])
    Labelled, Wished, Questioned = bodies

    async def find(asked: Any) -> tuple[int | User, int, float]:
        """Return who is asked about, their label and their offset."""
        if isinstance(asked, messages.OfUser):
            user = await _number(users, asked.user)
            return user, int(model.user_labels_[user]), float(model.user_offsets_[user])
        rated = [await _number(items, name) for name in asked.ratings]
        if len(set(rated)) < len(rated):
            raise HTTPException(422, "body.ratings: two of the names are those of one item")
        visitor = model.new_user(rated, list(asked.ratings.values()))
        return visitor, visitor.label, visitor.offset

    @app.post("/label", response_model=messages.Label, responses=messages.ERRORS)
    async def label(asked: Labelled) -> Any:
        """Return the group of a user."""
        _, label, offset = await find(asked)
        return messages.AsciiResponse({"label": label, "offset": offset})

    @app.post("/recommend", response_model=messages.Recommendations, responses=messages.ERRORS)
    async def recommend(asked: Wished) -> Any:
        """Return items that the user has not rated, best first."""
        user, label, _ = await find(asked)
        best = model.recommend(user, asked.n, by=asked.by, exclude_seen=asked.exclude_seen)
        listed = [vars(one) | {"item": titles[one.item]} for one in best]
        return messages.AsciiResponse({"label": label, "recommendations": listed})

    @app.post("/explain", response_model=messages.Explained, responses=messages.ERRORS)
    async def explain(asked: Questioned) -> Any:
        """Return the predicted rating of an item and where it comes from."""
        user, *_ = await find(asked)
        explanation = model.explain(user, await _number(items, asked.item))
        return messages.AsciiResponse(explanation.as_record(called))


def _add_search(app: FastAPI, what: str, names: NameIndex, example: str) -> None:
    """Add what finds users or items by a part of their names."""
    text = f"Return {what} whose name holds the text: `{what}?text={example}`."
    answered: Any = {"response_model": messages.Names, "responses": messages.ERRORS}

    @app.get(f"/{what}", name=what, description=text, **answered)
    async def search(text: messages.Part = "") -> Any:
        found = await run_in_threadpool(names.search, text, _MOST_FOUND)
        return messages.AsciiResponse({"names": found})


def _add_monitoring(app: FastAPI, model: BlockRecommender, counts: RequestCounts) -> None:
    """Add what monitors and people ask for: health, readiness, counts, a page about the rest."""

    @app.get("/health", response_model=messages.Health)
    async def health() -> Any:
        """Say that the service is up and what it serves."""
        sizes = *model.ratings_.shape, *model.block_means_.shape
        served = "ok", __version__, *sizes, model.rating_range_
        return messages.AsciiResponse(dict(zip(messages.Health.model_fields, served, strict=True)))

    @app.get("/ready", response_model=messages.Ready, responses={503: {"model": messages.Ready}})
    async def ready() -> Any:
        """Say whether requests are answered; not once the service is stopping."""
        status, code = ("ready", 200) if app.state.ready else ("stopping", 503)
        return messages.AsciiResponse({"status": status}, status_code=code)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Any:
        return PlainTextResponse(counts.text(), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page() -> Any:
        return HTMLResponse(_PAGE.read_text(encoding="utf-8"), headers=_ALONE)


@asynccontextmanager
async def _note_stop(app: FastAPI) -> AsyncIterator[None]:
    app.state.ready = True  # an application may be started again
    yield
    app.state.ready = False


async def _number(names: NameIndex, name: str) -> int:
    """Return the number of a name; an unknown one is compared with others off the event loop."""
    try:
        return names.find(name) if name in names else await run_in_threadpool(names.find, name)
    except UnknownNameError as unknown:
        raise HTTPException(404, str(unknown)) from None


async def _name_faults(request: Request, error: RequestValidationError) -> messages.AsciiResponse:
    """Name the first faults; what was sent is not sent back."""
    sent = error.body if isinstance(error.body, dict) else None
    if sent is not None and not sent.keys() & {"user", "ratings"}:
        faults = ["pass `user`, or `ratings` of a new user"]
    else:
        # A body with a user asks about one: what it lacks of other questions tells nothing.
        other = "Visitor" if sent is not None and "user" in sent else "User"
        found = [one for one in error.errors() if other not in str(one["loc"][1:2])]
        faults = [f"{_KIND.sub('', '.'.join(map(str, o['loc'])))}: {o['msg']}" for o in found[:5]]
    return messages.AsciiResponse({"detail": "; ".join(faults)}, status_code=422)
