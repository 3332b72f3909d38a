"""The service: answers, refusals, and whatever its own description allows to be sent."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.request import urlopen

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot import TransportCoclustering
from ccot.cli import app as command
from ccot.recommend import BlockRecommender, load_recommender
from ccot.recommend.guards import MAX_BODY
from ccot.recommend.server import Service, load_app
from tests.conftest import needs_unix

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    rng = np.random.default_rng(0)
    taste = np.array([[5.0, 1.0], [2.0, 5.0]])[np.arange(40) % 2][:, np.arange(30) % 2]
    ratings = np.where(rng.random(taste.shape) < 0.5, taste, np.nan)
    names = [f"film {number}" for number in range(30)]
    model = BlockRecommender(TransportCoclustering(2, 2, random_state=0))
    path = tmp_path_factory.mktemp("model") / "films.ccot"
    return model.fit(ratings, item_names=names).save(path)


@pytest.fixture(scope="module")
def client(model_file):
    from fastapi.testclient import TestClient

    # An error of ours would be raised here and not hide behind a status.
    return TestClient(load_app(Service(str(model_file))))


@pytest.fixture(scope="module")
def model(model_file):
    return load_recommender(model_file)


def test_health(client):
    answer = client.get("/health").json()
    assert answer["status"] == "ok"
    assert (answer["users"], answer["items"]) == (40, 30)
    assert (answer["user_clusters"], answer["item_clusters"]) == (2, 2)


def test_answers_are_the_models(client, model):
    ratings = {"film 0": 5, "film 1": 1, "film 2": 4.5}
    visitor = model.new_user([0, 1, 2], [5, 1, 4.5])
    label = client.post("/label", json={"ratings": ratings}).json()
    assert label == {"label": visitor.label, "offset": visitor.offset}
    answer = client.post("/recommend", json={"ratings": ratings, "n": 4}).json()
    assert answer["label"] == visitor.label
    assert answer["recommendations"] == [
        {"item": f"film {one.item}", "rating": one.rating, "liking": one.liking}
        for one in model.recommend(visitor, 4)
    ]
    told = client.post("/explain", json={"user": "3", "item": "film 7"}).json()
    expected = model.explain(3, 7)
    assert told["rating"] == expected.rating
    assert told["block"] == list(expected.block)
    assert [near["user"] for near in told["neighbours"]] == [
        str(near.user) for near in expected.neighbours
    ]
    assert told["text"] == str(expected)


def test_user_of_the_fit(client, model):
    body = {"user": "5", "n": 3, "by": "rating", "exclude_seen": False}
    answer = client.post("/recommend", json=body).json()
    best = model.recommend(5, 3, by="rating", exclude_seen=False)
    assert [one["item"] for one in answer["recommendations"]] == [
        f"film {one.item}" for one in best
    ]


def test_nobody_gets_what_everybody_likes(client):
    assert client.post("/label", json={"ratings": {}}).json() == {"label": -1, "offset": 0.0}
    answer = client.post("/recommend", json={"ratings": {}})
    assert len(answer.json()["recommendations"]) == 10
    told = client.post("/explain", json={"ratings": {}, "item": "film 1"}).json()
    assert told["block_mean"] is None


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/label", b"", 422, "body"),
        ("/label", b"{", 422, "JSON"),
        ("/label", b"[1, 2]", 422, "body"),
        ("/label", b'{"ratings": {"film 0": 6}}', 422, "less than or equal to 5"),
        ("/label", b'{"ratings": {"film 0": NaN}}', 422, "finite"),
        ("/label", b'{"ratings": {"film 0": "5"}}', 422, "number"),
        ("/label", b'{"ratings": {"film 0": 1e999}}', 422, "finite"),
        ("/label", b'{"ratings": {"film 99": 5}}', 404, "there is no item 'film 99'; did you"),
        ("/label", b'{"ratings": {"\\ud800": 5}}', 422, "body"),
        ("/label", b'{"user": "no one"}', 404, "no user"),
        ("/label", b'{"user": "1", "ratings": {}}', 422, "Extra"),
        ("/recommend", b'{"user": "1", "n": 0}', 422, "greater than or equal to 1"),
        ("/recommend", b'{"user": "1", "n": 101}', 422, "less than or equal to 100"),
        ("/recommend", b'{"user": "1", "by": "magic"}', 422, "'liking' or 'rating'"),
        ("/recommend", b'{"user": [1]}', 422, "string"),
        ("/recommend", b'{"person": "1"}', 422, "pass `user`, or `ratings`"),
        ("/explain", b'{"user": "1"}', 422, "item"),
        ("/explain", b'{"user": "1", "item": "x"}', 404, "no item"),
        ("/label", b"[" * 100_000, 400, "body"),
        ("/label", b"\xff\xfe\x00", 400, "body"),
        ("/label", b" " * (MAX_BODY + 1), 413, "larger than"),
    ],
)
def test_malformed_bodies_get_a_reason(client, path, body, status, reason):
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert reason in answer.json()["detail"]


def test_body_in_chunks_has_the_same_limit(client):
    chunks = (b" " * 4096 for _ in range(MAX_BODY // 4096 + 1))
    answer = client.post("/label", content=chunks, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_too_many_ratings_are_refused(client):
    ratings = {f"film {number}": 5 for number in range(5001)}
    answer = client.post("/label", json={"ratings": ratings})
    assert answer.status_code == 422


def run_fuzz(client_app, max_examples):
    """Send what the description allows, and what it does not; every answer must keep to it."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from schemathesis import GenerationMode

    schema = schemathesis.openapi.from_asgi("/openapi.json", client_app)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 7
    for operation in operations:
        for mode in GenerationMode:
            if operation.method == "get" and mode is GenerationMode.NEGATIVE:
                continue

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=max_examples,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            def check(case):
                case.call_and_validate()

            check()


def test_description_holds(client):
    run_fuzz(client.app, 4)


@pytest.mark.slow
def test_description_holds_for_long(client):
    run_fuzz(client.app, 500)


@needs_unix
@pytest.mark.slow
def test_command_serves_until_it_is_stopped(model_file):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "ccot", "serve", str(model_file), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        for _ in range(3000):
            try:
                with urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as answer:
                    assert json.load(answer)["status"] == "ok"
                    break
            except OSError:
                assert process.poll() is None, process.stdout.read()
                time.sleep(0.1)
        else:
            pytest.fail("the service did not come up")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        assert b"Traceback" not in output
    finally:
        process.kill()
        process.wait()


def test_command_refuses_what_is_no_model(tmp_path):
    (tmp_path / "x.ccot").write_text("nothing")
    result = CliRunner().invoke(command, ["serve", str(tmp_path / "x.ccot")])
    assert result.exit_code == 2
    assert "error:" in result.output
    assert "Traceback" not in result.output
