"""Downloads from a server on this machine that misbehaves in every way we know of."""

import hashlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ccot.datasets.download import download
from tests.faults import no_room

CONTENT = bytes(range(256)) * 1000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server:
    """Serves CONTENT; `script` holds what to do at each request, the last entry for good."""

    def __init__(self):
        self.script = ["whole"]
        self.ranges = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/file.bin"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request):
        asked = request.headers.get("Range")
        self.ranges.append(asked)
        todo = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(todo, int):
            request.send_error(todo)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if todo == "no ranges":
            start = 0
        if start >= len(CONTENT):
            request.send_error(416)
            return
        body = CONTENT[start:]
        if todo == "wrong":
            body = b"x" * len(body)
        request.send_response(206 if start else 200)
        if todo != "no length":
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if todo == "break":
            body = body[: len(body) // 2]
        if todo == "stall":
            request.wfile.write(body[:1000])
            request.wfile.flush()
            time.sleep(1)
            return
        if todo == "slow":
            for place in range(0, len(body), 50_000):
                request.wfile.write(body[place : place + 50_000])
                request.wfile.flush()
                time.sleep(0.02)
            return
        request.wfile.write(body)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def fetch(server, tmp_path):
    target = tmp_path / "cache" / "file.bin"

    def run(*script, md5=MD5, **options):
        server.script = list(script)
        return download(server.url, target, md5=md5, delay=0.001, timeout=0.3, **options)

    run.target, run.part = target, target.with_name("file.bin.part")
    return run


def is_whole(path):
    return path.read_bytes() == CONTENT and not path.with_name("file.bin.part").exists()


@pytest.mark.parametrize("manner", ["whole", "slow", "no length", "no ranges"])
def test_file_arrives_however_it_is_sent(fetch, server, manner):
    assert is_whole(fetch(manner))
    assert server.ranges == [None]


def test_file_that_is_there_is_not_fetched_again(fetch, server):
    fetch("whole")
    fetch("whole")
    assert len(server.ranges) == 1


@pytest.mark.parametrize("damage", [b"", CONTENT[:1000], CONTENT[:-1] + b"x"])
def test_damaged_file_is_fetched_again(fetch, server, damage):
    fetch("whole")
    fetch.target.write_bytes(damage)
    with pytest.warns(UserWarning, match="is damaged and will be downloaded"):
        assert is_whole(fetch("whole"))
    assert len(server.ranges) == 2


def test_file_that_cannot_be_read_is_named(fetch):
    fetch.target.mkdir(parents=True)
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(OSError, match="directory"),
    ):
        fetch("whole")
    fetch.target.rmdir()
    assert is_whole(fetch("whole"))


def test_damaged_file_stays_where_no_better_one_is_to_be_had(fetch):
    fetch("whole")
    fetch.target.write_bytes(b"damaged")
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(OSError, match="put the file at"),
    ):
        fetch(503, n_tries=1)
    assert fetch.target.read_bytes() == b"damaged"


def test_full_disk_is_no_fault_of_the_server(fetch, server):
    with no_room(100_000), pytest.raises(OSError, match=r"the disk has no room .* is kept"):
        fetch("whole")
    assert server.ranges == [None]
    assert is_whole(fetch("whole"))
    assert server.ranges[1] == "bytes=100000-"


def test_broken_connection_is_resumed_where_it_broke(fetch, server):
    assert is_whole(fetch("break", "break", "whole"))
    half = len(CONTENT) // 2
    assert server.ranges == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_server_that_falls_silent_is_asked_again(fetch, server):
    assert is_whole(fetch("stall", "whole"))
    assert server.ranges[1] == "bytes=1000-"


def test_next_call_goes_on_where_the_last_gave_up(fetch, server):
    with pytest.raises(OSError, match=r"broke after .*the part downloaded so far is kept"):
        fetch("break", n_tries=1)
    assert not fetch.target.exists()
    assert is_whole(fetch("whole"))
    assert server.ranges == [None, f"bytes={len(CONTENT) // 2}-"]


def test_server_without_ranges_starts_over(fetch):
    assert is_whole(fetch("break", "no ranges"))


@pytest.mark.parametrize("code", [429, 500, 503])
def test_passing_troubles_are_waited_out(fetch, server, code):
    assert is_whole(fetch(code, code, "whole"))
    assert len(server.ranges) == 3


def test_missing_file_is_not_asked_for_twice(fetch, server):
    with pytest.raises(OSError, match="404"):
        fetch(404)
    assert len(server.ranges) == 1


def test_wrong_content_never_gets_the_name(fetch, server):
    with pytest.raises(OSError, match="checksum"):
        fetch("wrong", n_tries=2)
    assert not fetch.target.exists()
    assert not fetch.part.exists()
    assert server.ranges == [None, None]


def test_remainder_of_another_file_is_thrown_away(fetch):
    fetch.part.parent.mkdir()
    fetch.part.write_bytes(b"something else")
    assert is_whole(fetch("whole"))


@pytest.mark.parametrize("held", [CONTENT, CONTENT + b"more"])
def test_part_that_reaches_the_end(fetch, server, held):
    fetch.part.parent.mkdir()
    fetch.part.write_bytes(held)
    assert is_whole(fetch("whole"))
    assert len(server.ranges) == (1 if held == CONTENT else 2)


def test_no_server_says_what_to_do(tmp_path):
    with pytest.raises(OSError, match=r"connection failed .* put the file at .*file\.bin"):
        download(
            "http://127.0.0.1:9/file.bin", tmp_path / "file.bin", md5=MD5, n_tries=2, delay=0.001
        )
