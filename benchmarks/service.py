"""The HTTP service under load: a steady rate of requests on loopback, and what came back.

``ccot serve`` runs with one worker in a process of its own; requests of new users, each with the
ratings of some user of MovieLens-100K, are sent at a fixed rate over kept-alive connections from
this process. Each is timed from the moment it was due: waiting for a free connection counts.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.data import need_data
from benchmarks.record import store
from ccot.datasets import fetch_movielens_100k
from ccot.recommend import BlockRecommender

HOST, PORT = "127.0.0.1", 8791
_BODIES = 500


def request_bytes(path: str, body: dict) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    return status, await reader.readexactly(length)


async def client(
    queue: asyncio.Queue, requests: list[bytes], times: list[float], errors: list[str]
) -> None:
    """One connection: takes what is due, sends it, waits for the answer."""
    reader, writer = await asyncio.open_connection(HOST, PORT)
    while (due := await queue.get()) is not None:
        number, moment = due
        try:
            writer.write(requests[number % len(requests)])
            status, content = await answer(reader)
            if status != 200 or len(json.loads(content)["recommendations"]) != 10:
                errors.append(f"{status}: {content[:100]!r}")
        except (OSError, asyncio.IncompleteReadError, ValueError, KeyError) as error:
            errors.append(repr(error))
            reader, writer = await asyncio.open_connection(HOST, PORT)
        times.append(time.perf_counter() - moment)
    writer.close()


async def load(requests: list[bytes], rate: int, seconds: int, n_connections: int) -> dict:
    queue: asyncio.Queue = asyncio.Queue()
    times: list[float] = []
    errors: list[str] = []
    clients = [
        asyncio.create_task(client(queue, requests, times, errors)) for _ in range(n_connections)
    ]
    start = time.perf_counter()
    for number in range(rate * seconds):
        due = start + number / rate
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        # Timed from when it was due: a generator that falls behind hides nothing.
        queue.put_nowait((number, due))
    for _ in clients:
        queue.put_nowait(None)
    await asyncio.gather(*clients)
    took = time.perf_counter() - start
    milliseconds = np.quantile(1000 * np.array(times), [0.5, 0.99, 0.999, 1.0]).round(2).tolist()
    return {
        "asked_per_second": rate,
        "seconds": round(took, 2),
        "requests": len(times),
        "answered_per_second": round(len(times) / took, 1),
        "errors": len(errors),
        "first_errors": errors[:3],
        "milliseconds": dict(zip(("median", "p99", "p999", "largest"), milliseconds, strict=True)),
        "connections": n_connections,
    }


async def wait_until_up(process: subprocess.Popen) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit("the service did not start")
        try:
            _, writer = await asyncio.open_connection(HOST, PORT)
        except OSError:
            await asyncio.sleep(0.2)
            continue
        writer.close()
        return
    raise SystemExit("the service did not come up")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    ratings = fetch_movielens_100k(need_data()).data
    model = BlockRecommender(random_state=0).fit(ratings)
    rng = np.random.default_rng(0)
    requests = []
    for user in rng.integers(ratings.shape[0], size=_BODIES):
        within = slice(ratings.indptr[user], ratings.indptr[user + 1])
        items, values = ratings.indices[within].tolist(), ratings.data[within].tolist()
        body = {"ratings": {str(i): v for i, v in zip(items, values, strict=True)}, "n": 10}
        requests.append(request_bytes("/recommend", body))
    with tempfile.TemporaryDirectory() as folder:
        path = model.save(Path(folder, "model.ccot"))
        command = ["-m", "ccot", "serve", str(path), "--port", str(PORT)]
        command += ["--workers", str(arguments.workers)]
        process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
        try:
            asyncio.run(wait_until_up(process))
            asyncio.run(load(requests, 100, 2, arguments.connections))
            result = asyncio.run(
                load(requests, arguments.rate, arguments.seconds, arguments.connections)
            )
        finally:
            process.terminate()
            process.wait()
    result["workers"] = arguments.workers
    result["mean_ratings_in_a_request"] = round(float(np.mean(np.diff(ratings.indptr))), 1)
    print(result)
    print(f"stored {store('service', result)}")


if __name__ == "__main__":
    main()
