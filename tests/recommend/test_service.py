"""The service under clients that are slow, many, unknown or without a token."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from difflib import get_close_matches

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot import TransportCoclustering
from ccot.cli import app as command
from ccot.cli import ratings
from ccot.recommend import BlockRecommender
from ccot.recommend import server as serving
from ccot.recommend.guards import RequestCounts
from ccot.recommend.names import NameIndex, UnknownNameError
from ccot.recommend.service import make_app
from tests.conftest import needs_unix

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")


@pytest.fixture(scope="module")
def model():
    taste = np.array([[5.0, 1.0], [2.0, 5.0]])[np.arange(20) % 2][:, np.arange(12) % 2]
    return BlockRecommender(TransportCoclustering(2, 2, random_state=0)).fit(taste)


def client_of(model, **options):
    from fastapi.testclient import TestClient

    return TestClient(make_app(model, **options))


@pytest.fixture
def running(model, monkeypatch):
    """The address of a service with short limits, in a thread of this process."""
    import uvicorn

    monkeypatch.setattr(serving, "_HEAD_SECONDS", 0.5)
    monkeypatch.setattr(serving, "_MAX_CONNECTIONS", 20)
    options = {"http": serving.LimitedProtocol, "log_level": "error", "ws": "none"}
    server = uvicorn.Server(uvicorn.Config(make_app(model), **options))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listener.getsockname()
        server.should_exit = True
        thread.join()


def ask(address, path="/health"):
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return connection.makefile("rb").read()


def is_closed(connection):
    connection.settimeout(3)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_head_that_does_not_arrive_is_not_waited_for(running):
    silent, half = (socket.create_connection(running) for _ in range(2))
    half.sendall(b"GET /health HTTP/1.1\r\nHost:")
    start = time.monotonic()
    # A byte now and then does not keep a connection.
    for _ in range(8):
        time.sleep(0.1)
        with suppress(OSError):
            half.sendall(b"x")
    assert is_closed(silent)
    assert is_closed(half)
    assert time.monotonic() - start < 3
    assert b"200 OK" in ask(running)


def test_a_second_request_has_the_same_limit(running):
    with socket.create_connection(running) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.settimeout(3)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(4096)
        connection.sendall(b"GET /hea")
        assert is_closed(connection)


def test_connections_beyond_the_limit_are_closed_at_once(running):
    held = [socket.create_connection(running) for _ in range(20)]
    time.sleep(0.2)
    with socket.create_connection(running) as one_more:
        start = time.monotonic()
        assert is_closed(one_more)
        assert time.monotonic() - start < 0.3
    for connection in held:
        connection.close()
    time.sleep(0.2)
    assert b"200 OK" in ask(running)


def test_a_body_that_does_not_arrive_is_refused(running, monkeypatch):
    from ccot.recommend.guards import LimitBody

    monkeypatch.setattr(LimitBody.__init__, "__defaults__", (1 << 18, 0.2))
    with socket.create_connection(running, timeout=15) as connection:
        connection.sendall(b"POST /label HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")


def test_token(model):
    client = client_of(model, token="secret")
    right, wrong = ({"Authorization": f"Bearer {token}"} for token in ("secret", "guess"))
    for headers in ({}, wrong):
        answer = client.post("/label", json={"user": "1"}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert client.post("/label", json={"user": "1"}, headers=right).status_code == 200
    assert client.get("/metrics").status_code == 401
    assert [client.get(path).status_code for path in ("/health", "/ready")] == [200, 200]


def test_this_machine_is_called_by_its_addresses_of_both_kinds(model):
    pytest.importorskip("starlette", minversion="1.10")  # earlier ones know no address in brackets
    client = client_of(model, hosts=ratings._LOOPBACK)
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert client.get("/health", headers={"Host": host}).status_code == 200
    for host in ("[::2]", "localhost.example.org", "localhost@example.org", ""):
        assert client.get("/health", headers={"Host": host}).status_code == 400


def test_hosts(model):
    client = client_of(model, hosts=("films.example.org",))
    assert client.get("/health").status_code == 400
    assert client.get("/health", headers={"Host": "films.example.org:80"}).status_code == 200


def test_not_ready_once_stopped(model):
    client = client_of(model)
    with client:
        assert client.get("/ready").json() == {"status": "ready"}
    assert client.get("/ready").status_code == 503
    assert client.get("/health").status_code == 200
    with client:  # started once more, it is ready again
        assert client.get("/ready").status_code == 200


def test_metrics_count_requests_and_no_unbounded_paths(model):
    client = client_of(model)
    client.post("/label", json={"user": "1"})
    for number in range(5):
        client.get(f"/{number}")
    text = client.get("/metrics").text
    assert 'ccot_requests_total{path="/label",status="200"} 1\n' in text
    assert 'ccot_requests_total{path="other",status="404"} 5\n' in text
    assert "ccot_request_seconds_count 6\n" in text
    assert 'le="+Inf"} 6\n' in text


def test_errors_of_ours_are_counted_as_such(model, monkeypatch):
    from fastapi.testclient import TestClient

    def fail(*_):
        raise ValueError("a fault")

    client = TestClient(make_app(model), raise_server_exceptions=False)
    with monkeypatch.context() as patch:
        patch.setattr(BlockRecommender, "new_user", fail)
        assert client.post("/label", json={"ratings": {}}).status_code == 500
    assert 'ccot_requests_total{path="/label",status="500"} 1\n' in client.get("/metrics").text


def test_one_item_by_two_names_is_refused():
    taste = np.array([[5.0, 1.0], [2.0, 5.0]])[np.arange(20) % 2][:, np.arange(12) % 2]
    named = BlockRecommender(TransportCoclustering(2, 2, random_state=0)).fit(
        taste, item_names=[f"film {k}" for k in range(12)], item_ids=[f"i{k}" for k in range(12)]
    )
    answer = client_of(named).post("/label", json={"ratings": {"film 0": 5, "i0": 1}})
    assert answer.status_code == 422
    assert "two of the names are those of one item" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_page_needs_nothing_from_elsewhere(model, path):
    answer = client_of(model, token="secret").get(path)
    assert "openapi.json" in answer.text
    assert "http" not in answer.text
    assert "src=" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_names_are_searched(model):
    client = client_of(model)
    found = client.get("/items", params={"text": model.item_names_[1].upper()}).json()["names"]
    assert found[0] == model.item_names_[1]
    assert len(found) <= 20
    assert client.get("/users", params={"text": "nobody"}).json() == {"names": []}
    assert len(client.get("/users").json()["names"]) == 20
    assert client.get("/users", params={"text": "x" * 81}).status_code == 422


def test_numbers_are_names_too(model):
    client = client_of(model)
    answers = [client.post("/label", json={"user": user}).json() for user in (7, 7.0, "7")]
    assert answers[0] == answers[1] == answers[2]
    assert client.post("/label", json={"user": True}).status_code == 422
    # The description says so, too.
    user = client.get("/openapi.json").json()["components"]["schemas"]["OfUser"]["properties"]
    assert {kind["type"] for kind in user["user"]["anyOf"]} == {"string", "integer"}


@pytest.mark.parametrize("text", ["a", "night", "ght (5", "", "zzz", "(59999)"])
def test_search_of_many_names_takes_milliseconds(text):
    names = [f"{'Night' if k % 2 else 'DAY'} a ({k})" for k in range(60_000)]
    index = NameIndex(names, "item", [str(k) for k in range(60_000)])
    index.search("x", 20)
    start = time.process_time()
    found = index.search(text, 20)
    assert time.process_time() - start < 0.1
    begin = [name for name in names if name.casefold().startswith(text)]
    within = [name for name in names if text in name.casefold() and name not in begin[:20]]
    assert found == (begin + within)[:20]
    assert index.search("59999", 20)[0] == "Night a (59999)"


@pytest.mark.parametrize("size", [200, 60_000])
def test_unknown_names_take_milliseconds_and_find_what_looks_alike(size):
    rng = np.random.default_rng(0)
    words = np.array(["night", "river", "the", "of", "stone", "king", "lost", "summer", "ghost"])
    names = [f"{' '.join(words[rng.integers(9, size=4)])} ({k})" for k in range(size)]
    index = NameIndex(names, "item")
    index.similar("x")
    misspelt = "x" + names[size // 2]
    start = time.process_time()
    near = index.similar(misspelt)
    assert time.process_time() - start < 0.2
    assert near[0] == get_close_matches(misspelt, names[size // 2 - 50 : size // 2 + 50], n=1)[0]
    assert index.similar("\u0416" * 30) == []
    with pytest.raises(UnknownNameError, match="did you mean"):
        index.find(misspelt)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--port", "70000"], "65535"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
        (["--host", "a" * 70], "cannot listen"),
        (["--host", ""], "--host is empty"),
        (["--host", "\udcff"], "(no such host): choose another --host or --port"),
        *((["--allow-host", one], f"--allow-host {one!r} is not the name of a host")
          for one in ("", "*x", "a*b", "http://x/", "x:80", "a,b")),
        (["--log-level", "shout"], "shout"),
        (["--token-file", "nowhere"], "nowhere"),
        (["--token-file", "latin.txt"], "latin.txt must contain a token of printable ASCII"),
    ],
)  # fmt: skip
def test_bad_options_are_refused_in_one_line(model, tmp_path, options, reason, monkeypatch):
    path = model.save(tmp_path / "films.ccot")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.txt").write_bytes("gehe\u00efm".encode("latin-1"))
    result = CliRunner().invoke(command, ["serve", str(path), *options])
    assert result.exit_code == 2
    assert reason in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("host", ["*", "*.example.org", "my_host", "10.0.0.1", "::1", "[::1]"])
def test_hosts_that_may_be_allowed(host, model, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(serving, "run_service", lambda service, **_: seen.append(service.hosts))
    monkeypatch.setattr(serving, "check_address", lambda host, port: None)
    path = str(model.save(tmp_path / "films.ccot"))
    result = CliRunner().invoke(command, ["serve", path, "--allow-host", host])
    assert (result.exit_code, seen) == (0, [host])


def test_a_port_in_use_is_refused(model, tmp_path):
    path = model.save(tmp_path / "films.ccot")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(command, ["serve", str(path), "--port", port])
    assert result.exit_code == 2
    assert "choose another" in result.output


@contextmanager
def served(model, folder, *options):
    """A service in a process of its own, with the address of it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    path = model.save(folder / "films.ccot")
    log = folder / "log.txt"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "ccot", "serve", path, "--port", str(address[1]), *options],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        for _ in range(1200):
            try:
                assert b"HTTP/1.1 " in ask(address)
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
        yield process, address, log
    finally:
        process.kill()
        process.wait()


@needs_unix
@pytest.mark.slow
@pytest.mark.parametrize("stop", ["SIGTERM", "SIGKILL"])
def test_workers_end_with_their_parent_and_do_not_wait_for_half_a_request(model, tmp_path, stop):
    with served(model, tmp_path, "--workers", "2") as (process, address, _):
        half = socket.create_connection(address)
        half.sendall(b"POST /label HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{")
        start = time.monotonic()
        process.send_signal(getattr(signal, stop))
        process.wait(timeout=30)
        while time.monotonic() - start < 20:
            try:
                socket.create_connection(address, timeout=1).close()
                time.sleep(0.2)
            except OSError:
                break
        assert time.monotonic() - start < 20


@pytest.mark.slow
def test_a_thousand_half_requests_are_not_held(model, tmp_path):
    psutil, resource = pytest.importorskip("psutil"), pytest.importorskip("resource")
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, allowed[1]), allowed[1]))
    half = []
    try:
        with served(model, tmp_path, "--allow-host", "x") as (process, address, log):
            service = psutil.Process(process.pid)
            before = service.memory_info().rss
            for _ in range(1100):
                with suppress(OSError):
                    half.append(socket.create_connection(address, timeout=5))
                    half[-1].sendall(b"POST /label HTTP/1.1\r\nContent-Le" + b"x" * 8000)
            assert service.memory_info().rss - before < 64 << 20
            assert service.num_fds() < 500
            time.sleep(serving._HEAD_SECONDS + 2)
            assert b"200 OK" in ask(address)
            assert service.num_fds() < 100
            assert log.stat().st_size < 20_000
            start = time.monotonic()
            process.terminate()
            process.wait(timeout=30)
            assert time.monotonic() - start < serving._STOP_SECONDS + 10
    finally:
        for connection in half:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)


def test_names_are_found_and_misspelt_ones_suggested():
    films = NameIndex(("Fargo (1996)", "Alien (1979)"), "item")
    assert films.find("Alien (1979)") == 1
    assert films.similar("Aliens 1979") == ["Alien (1979)"]


def test_requests_are_counted_in_seconds():
    counts = RequestCounts()
    counts.add("/label", 200, 0.25)
    assert "ccot_request_seconds_sum 0.25" in counts.text()


def test_items_of_the_visitors_taste_are_recommended():
    taste = np.array([[5, 1], [1, 5]])[np.arange(40) % 2][:, np.arange(20) % 2]
    client = client_of(BlockRecommender(random_state=0).fit(taste))
    answer = client.post("/recommend", json={"ratings": {"0": 5, "1": 1}, "n": 2})
    assert [best["item"] for best in answer.json()["recommendations"]] == ["2", "4"]
