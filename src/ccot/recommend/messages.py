"""What the service is sent and what it answers."""

# Annotations are read when routes are made, so they must not be turned into text; and what a
# rating may be is known only when the model is.
# pyright: reportInvalidTypeForm=false
import json
from typing import Annotated, Any, Literal

from fastapi import Body, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

_MAX_RATINGS, _MAX_LIST, _MAX_NAME = 5000, 100, 500


class AsciiResponse(JSONResponse):
    """JSON that any client can read: characters beyond ASCII are escaped."""

    def render(self, content: Any) -> bytes:
        """Return the content as bytes."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Message(BaseModel):
    """A value without unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Health(Message):
    """What is served."""

    status: Literal["ok"]
    version: str
    users: int
    items: int
    user_clusters: int
    item_clusters: int
    rating_range: list[float]


class Ready(Message):
    """Whether requests are answered."""

    status: Literal["ready", "stopping"]


class Label(Message):
    """The cluster of a user; -1: too little is known."""

    label: int
    offset: float


class Names(Message):
    """Names that hold the text, those that begin with it first; no more than 20."""

    names: list[str]


class Recommended(Message):
    """One recommended item."""

    item: str
    rating: float
    liking: float


class Recommendations(Message):
    """Recommended items, best first."""

    label: int
    recommendations: list[Recommended]


class Near(Message):
    """A member of the user's group who rated the item."""

    user: str
    rating: float
    shared: int


class Explained(Message):
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


class Problem(Message):
    """What is wrong with a request."""

    detail: str


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in (
        (400, "The body cannot be read"),
        (401, "The token is missing or wrong"),
        (404, "No such user or item"),
        (408, "The body did not arrive in time"),
        (413, "The body is too large"),
        (422, "The body does not have the required form"),
    )
}


def _as_name(value: Any) -> Any:
    """Take 17 for "17": identifiers are often numbers."""
    return str(_whole(value)) if type(_whole(value)) is int else value


Key = Annotated[str, Field(min_length=1, max_length=_MAX_NAME)]
_DESCRIBED = [{"type": "string", "minLength": 1, "maxLength": _MAX_NAME}, {"type": "integer"}]
Name = Annotated[Key, BeforeValidator(_as_name), WithJsonSchema({"anyOf": _DESCRIBED})]
# Of what is searched for: the part of a name.
Part = Annotated[str, Query(max_length=80)]


class OfUser(Message):
    """A question about a user of the fit."""

    user: Name


def request_types(low: float, high: float, user: str, item: str) -> tuple[Any, Any, Any]:
    """Return types of the bodies of label, recommend and explain; user and item are examples."""
    Rating = Annotated[float, Field(ge=low, le=high, allow_inf_nan=False)]
    described = Field(max_length=_MAX_RATINGS, description="Items by name, and their ratings")

    class OfVisitor(Message):
        ratings: Annotated[dict[Key, Rating], described]

    class Wish(Message):
        n: Annotated[int, Field(ge=1, le=_MAX_LIST), BeforeValidator(_whole)] = 10
        by: Literal["liking", "rating"] = "liking"
        exclude_seen: bool = True

    class VisitorWish(Wish, OfVisitor):
        pass

    class UserWish(Wish, OfUser):
        pass

    class VisitorQuestion(OfVisitor):
        item: Name

    class UserQuestion(OfUser):
        item: Name

    def body(kinds: Any, **more: str) -> Any:
        examples = {"ratings": {item: high}} | more, {"user": user} | more
        named: Any = {str(k): {"value": example} for k, example in enumerate(examples)}
        return Annotated[kinds, Body(openapi_examples=named)]

    return (
        body(OfVisitor | OfUser),
        body(VisitorWish | UserWish),
        body(VisitorQuestion | UserQuestion, item=item),
    )


def _whole(value: Any) -> Any:
    """Take 17.0 for 17, as JSON does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
