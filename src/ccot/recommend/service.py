"""A recommender behind HTTP: labels, recommendations and explanations for users old and new."""

# Annotations are read when routes are made, so they must not be turned into text; and what a
# rating may be is known only when the model is.
# pyright: reportInvalidTypeForm=false
import json
import math
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from ccot._version import __version__
from ccot.recommend.names import UnknownNameError, find
from ccot.recommend.recommender import BlockRecommender
from ccot.recommend.values import User

try:
    from fastapi import Body, FastAPI, HTTPException, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
except ImportError as missing:
    raise ImportError(
        "the service needs FastAPI and uvicorn: pip install 'ccot[serve]'"
    ) from missing

MAX_BODY = 1 << 18
_MAX_RATINGS, _MAX_LIST, _MAX_NAME = 5000, 100, 500


class Ascii(JSONResponse):
    """JSON that any client can read: names with odd characters in them are escaped."""

    def render(self, content: Any) -> bytes:
        """Return the content as bytes."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Strict(BaseModel):
    """A value without fields that nobody knows."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Health(Strict):
    """What is served."""

    status: Literal["ok"]
    version: str
    users: int
    items: int
    user_clusters: int
    item_clusters: int


class Label(Strict):
    """Where a user belongs; -1: too little is known."""

    label: int
    offset: float


class Recommended(Strict):
    """One recommended item."""

    item: str
    rating: float
    liking: float


class Recommendations(Strict):
    """Recommended items, best first."""

    label: int
    recommendations: list[Recommended]


class Near(Strict):
    """A member of the user's group who rated the item."""

    user: str
    rating: float
    shared: int


class Explained(Strict):
    """A predicted rating and its parts."""

    rating: float
    mean: float
    user_offset: float
    item_offset: float
    block_effect: float
    block: tuple[int, int]
    block_mean: float | None
    block_size: int
    neighbours: list[Near]
    text: str


class Problem(Strict):
    """What is wrong with a request."""

    detail: str


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body cannot be read"},
    404: {"model": Problem, "description": "No such user or item"},
    413: {"model": Problem, "description": "The body is too large"},
    422: {"model": Problem, "description": "The body is not what is asked for"},
}


def make_app(model: BlockRecommender) -> FastAPI:
    """Return the service of one recommender.

    Parameters
    ----------
    model : BlockRecommender
        Fitted.

    Returns
    -------
    FastAPI
        An application for any ASGI server; ``/docs`` shows what it answers to.

    Examples
    --------
    >>> import numpy as np
    >>> from fastapi.testclient import TestClient
    >>> from ccot.recommend import BlockRecommender
    >>> from ccot.recommend.service import make_app
    >>> taste = np.array([[5, 1], [1, 5]])[np.arange(40) % 2][:, np.arange(20) % 2]
    >>> client = TestClient(make_app(BlockRecommender(random_state=0).fit(taste)))
    >>> answer = client.post("/recommend", json={"ratings": {"0": 5, "1": 1}, "n": 2})
    >>> [found["item"] for found in answer.json()["recommendations"]]
    ['2', '4']
    """
    low, high = model.rating_range_
    users = {name: number for number, name in enumerate(model.user_names_)}
    items = {name: number for number, name in enumerate(model.item_names_)}
    first = model.item_names_[0]

    Name = Annotated[str, Field(min_length=1, max_length=_MAX_NAME)]
    Rating = Annotated[float, Field(ge=low, le=high, allow_inf_nan=False)]
    Rated = Annotated[
        dict[Name, Rating],
        Field(max_length=_MAX_RATINGS, description="Items by name, and their ratings"),
    ]
    Count = Annotated[int, Field(ge=1, le=_MAX_LIST), BeforeValidator(_whole)]
    By = Literal["liking", "rating"]

    class OfVisitor(Strict):
        ratings: Rated

    class OfUser(Strict):
        user: Name

    class Wish(Strict):
        n: Count = 10
        by: By = "liking"
        exclude_seen: bool = True

    class VisitorWish(Wish, OfVisitor):
        pass

    class UserWish(Wish, OfUser):
        pass

    class VisitorQuestion(OfVisitor):
        item: Name

    class UserQuestion(OfUser):
        item: Name

    visitor = {"ratings": {first: high}}
    member = {"user": model.user_names_[0]}

    def body(*examples: dict[str, Any]) -> Any:
        return Body(openapi_examples={f"{k}": {"value": e} for k, e in enumerate(examples)})

    def place(asked: Any) -> int | User:
        if isinstance(asked, OfUser):
            return _number(users, asked.user, "user")
        rated = [_number(items, name, "item") for name in asked.ratings]
        return model.new_user(rated, list(asked.ratings.values()))

    def place_and_label(asked: Any) -> tuple[int | User, int]:
        who = place(asked)
        return who, who.label if isinstance(who, User) else int(model.user_labels_[who])

    app = FastAPI(
        title="ccot recommender",
        version=__version__,
        default_response_class=Ascii,
        description="Groups of users, recommended items, and reasons, from a co-clustering.",
    )
    app.add_middleware(LimitBody)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _say_what_is_wrong)  # type: ignore[arg-type]

    @app.get("/health", response_model=Health)
    async def health() -> Any:
        """Say that the service is up and what it serves."""
        shape = model.block_means_.shape
        return Ascii({"status": "ok", "version": __version__, "users": len(users),
                      "items": len(items), "user_clusters": shape[0],
                      "item_clusters": shape[1]})  # fmt: skip

    @app.post("/label", response_model=Label, responses=_ERRORS)
    async def label(asked: Annotated[OfVisitor | OfUser, body(visitor, member)]) -> Any:
        """Return the group of a user."""
        who, group = place_and_label(asked)
        offset = who.offset if isinstance(who, User) else float(model.user_offsets_[who])
        return Ascii({"label": group, "offset": offset})

    @app.post("/recommend", response_model=Recommendations, responses=_ERRORS)
    async def recommend(asked: Annotated[VisitorWish | UserWish, body(visitor, member)]) -> Any:
        """Return items that the user has not rated, best first."""
        who, group = place_and_label(asked)
        found = model.recommend(who, asked.n, exclude_seen=asked.exclude_seen, by=asked.by)
        listed = [
            {"item": model.item_names_[one.item], "rating": one.rating, "liking": one.liking}
            for one in found
        ]
        return Ascii({"label": group, "recommendations": listed})

    @app.post("/explain", response_model=Explained, responses=_ERRORS)
    async def explain(
        asked: Annotated[
            VisitorQuestion | UserQuestion,
            body(visitor | {"item": first}, member | {"item": first}),
        ],
    ) -> Any:
        """Return the predicted rating of an item and where it comes from."""
        told = model.explain(place(asked), _number(items, asked.item, "item"))
        near = [
            {"user": model.user_names_[one.user], "rating": one.rating, "shared": one.shared}
            for one in told.neighbours
        ]
        mean = None if math.isnan(told.block_mean) else told.block_mean
        return Ascii(vars(told) | {"block_mean": mean, "neighbours": near, "text": str(told)})

    return app


def _whole(value: Any) -> Any:
    """Take 17.0 for 17, as JSON does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(known: dict[str, int], name: str, what: str) -> int:
    try:
        return find(known, name, what)
    except UnknownNameError as unknown:
        raise HTTPException(404, str(unknown)) from None


async def _say_what_is_wrong(request: Request, error: RequestValidationError) -> JSONResponse:
    """Name the first faults; what was sent is not sent back."""
    faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:5]]
    return Ascii({"detail": "; ".join(faults)}, status_code=422)


class LimitBody:
    """Refuses bodies over a limit, however they are sent."""

    def __init__(self, app: Callable[..., Awaitable[None]], limit: int = MAX_BODY):
        self.app, self.limit = app, limit

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Gather the body, then let the application have it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.limit:
                refusal = {"detail": f"the body is larger than {self.limit} bytes"}
                await Ascii(refusal, status_code=413)(scope, receive, send)
                return
        gathered = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return gathered.pop() if gathered else await receive()

        await self.app(scope, again, send)
