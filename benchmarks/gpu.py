"""A GPU against the same work done draw by draw on it, and against the CPU beside it.

Needs PyTorch with a GPU. The protocol of the paper for CCOT: 100 sets of D1, D2 and D3 each, 1000
draws a set.
"""

import argparse
import time
from itertools import islice

import numpy as np
import ot
import torch
from joblib import Parallel, delayed
from ot.batch import dist_batch, solve_batch, solve_gromov_batch
from torch.profiler import ProfilerActivity, profile

from benchmarks.data import data_home
from benchmarks.movielens import ratings
from benchmarks.record import store
from ccot import CCOT, CCOTGW
from ccot.datasets import load_simulated
from ccot.metrics import error_rate
from ccot.scalings.costs import square_costs
from ccot.scalings.draws import CCOTSettings, DrawSolver
from ccot.scalings.kernels import own_similarity
from ccot.scalings.sampling import draw_indices
from ccot.transport.gromov import Limits, gromov_barycentre
from ccot.transport.sinkhorn import sinkhorn

REG = 0.2
SETS = ("D1", "D2", "D3")


def seconds(work, *arguments) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    work(*arguments)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def make_draws(matrix: np.ndarray, n_draws: int) -> np.ndarray:
    indices = draw_indices(*matrix.shape, "cover", np.random.default_rng(0))
    return np.array(list(islice(indices, n_draws)))


def make_solver(matrix: np.ndarray, draws: np.ndarray, device: str | None = "cuda") -> DrawSolver:
    return DrawSolver.prepare(matrix, draws, CCOTSettings(reg=REG, device=device))


def fit(name: str, seed: int, n_draws: int, device: str | None) -> CCOT:
    matrix = load_simulated(name, random_state=seed).data
    return CCOT(n_samplings=n_draws, random_state=0, device=device).fit(matrix)


def busy_seconds(work, *arguments) -> float:
    """Time in which kernels and copies ran on the card."""
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        seconds(work, *arguments)
    return sum(event.self_device_time_total for event in record.key_averages()) / 1e6


def protocol(n_sets: int, n_draws: int, n_threads: int) -> dict:
    """Time of the card (draws and steps), and from end to end with several fits under way.

    The card is busy for less than its part of a fit takes: it waits for the next command.
    """

    def through(clock) -> dict[str, float]:
        total = dict.fromkeys(SETS, 0.0)
        for name in SETS:
            for seed in range(n_sets):
                matrix = load_simulated(name, random_state=seed).data
                draws = make_draws(matrix, n_draws)
                solver = make_solver(matrix, draws)
                if not seed:
                    solver.partitions(draws)
                total[name] += clock(solver.partitions, draws)
        return total

    # The profiler slows the host down: a pass of its own.
    device, busy = through(seconds), through(busy_seconds)

    def everything():
        Parallel(n_jobs=n_threads, prefer="threads")(
            delayed(fit)(name, seed, n_draws, "cuda") for name in SETS for seed in range(n_sets)
        )

    return {
        "sets": n_sets * len(SETS),
        "draws_a_set": n_draws,
        "busy_seconds": sum(busy.values()),
        "busy_seconds_by_set": busy,
        "device_seconds": sum(device.values()),
        "device_seconds_by_set": device,
        "end_to_end_seconds": seconds(everything),
        "fits_under_way": n_threads,
    }


def pot_draw(matrix, draw) -> None:
    square = matrix[draw]
    mass = torch.full((square.shape[0],), 1 / square.shape[0], device="cuda", dtype=square.dtype)
    cost = ot.dist(square, square.T.contiguous())
    ot.sinkhorn(mass, mass, cost, REG * float(cost.median()))


def loops(n_loop: int) -> list[dict]:
    """One draw after the other on the card: POT's Sinkhorn, and our own without batches."""
    found = []
    for name in SETS:
        matrix = load_simulated(name, random_state=0).data
        draws = make_draws(matrix, 1000)
        solver = make_solver(matrix, draws)
        on_card = torch.asarray(matrix, device="cuda")

        def pot(n, on_card=on_card, draws=draws):
            for draw in draws[:n]:
                pot_draw(on_card, torch.asarray(draw, device="cuda"))

        def own(n, solver=solver, draws=draws):
            for draw in draws[:n]:
                solver.partitions(draw[None])

        pot(3), own(3), solver.partitions(draws)
        batch = seconds(solver.partitions, draws) / len(draws)
        found.append(
            {
                "set": name,
                "milliseconds_a_draw": 1e3 * batch,
                "times_faster_than_pot_draw_by_draw": seconds(pot, n_loop) / n_loop / batch,
                "times_faster_than_own_draw_by_draw": seconds(own, n_loop) / n_loop / batch,
            }
        )
        print(found[-1], flush=True)
    return found


def pot_batches(n_draws: int) -> list[dict]:
    """Draws solved at once: costs and transport by POT's batched Sinkhorn, and by our own."""
    found = []
    for name in SETS:
        matrix = load_simulated(name, random_state=0).data
        draws = make_draws(matrix, n_draws)
        solver = make_solver(matrix, draws)
        on_card = torch.asarray(matrix, device="cuda", dtype=torch.float32)
        indices = torch.asarray(draws, device="cuda")

        def pot(method, on_card=on_card, indices=indices):
            squares = on_card[indices]
            costs = dist_batch(squares, squares.mT.contiguous(), metric="sqeuclidean")
            costs /= costs.flatten(1).median(dim=1).values[:, None, None]
            # Its plain Sinkhorn makes arrays on the default device.
            with torch.device("cuda"):
                return solve_batch(costs, REG, tol=1e-6, method=method, grad="detach")

        def own(solver=solver, draws=draws):
            return solver.solve(draws)

        cell = {"set": name, "draws": n_draws, "milliseconds": 1e3 * _least(own)}
        for method in ("sinkhorn", "log_sinkhorn"):
            cell[f"times_faster_than_pot_{method}"] = (
                1e3 * _least(pot, method) / cell["milliseconds"]
            )
        found.append(cell)
        print(cell, flush=True)
    return found


def pot_gromov(n_problems: int) -> dict:
    """Alignments of kernels with one support: ours one by one, POT's in a batch.

    POT's are by a proximal method, which leaves no entropy in the end; ours keep it.
    """
    rows = [load_simulated("D1", random_state=seed).data for seed in range(n_problems)]
    kernels = torch.asarray(np.stack([own_similarity(x, "rbf")[0] for x in rows]), device="cuda")
    start = torch.asarray(np.random.default_rng(0).uniform(size=(30, 30)), device="cuda")
    start = (start + start.T) / 2
    supports = start.expand(n_problems, 30, 30).contiguous()
    limits = Limits(max_updates=1)

    def own():
        for kernel in kernels:
            gromov_barycentre(
                [kernel], [1.0], start, reg=1.0, limits=limits, exact_refinement=False
            )

    def pot(n):
        solve_gromov_batch(kernels[:n], supports[:n], reg=1.0, symmetric=True, grad="detach")

    return {
        "shape": [*kernels.shape, 30],
        "own_milliseconds_each": 1e3 * _least(own) / n_problems,
        "pot_milliseconds_each": 1e3 * _least(pot, n_problems) / n_problems,
        "pot_milliseconds_alone": 1e3 * _least(pot, 1),
    }


def _least(work, *arguments) -> float:
    return min(seconds(work, *arguments) for _ in range(3))


def bandwidth() -> dict:
    """Share of the card's copy bandwidth that the batched transport reaches."""
    block = torch.empty(2**30, device="cuda", dtype=torch.float32)
    target = torch.empty_like(block)
    target.copy_(block)
    copies = min(seconds(target.copy_, block) for _ in range(5))
    peak = 2 * block.numel() * 4 / copies
    del block, target
    matrix = load_simulated("D2", random_state=0).data
    draws = make_draws(matrix, 1000)
    solver = make_solver(matrix, draws)
    cross = square_costs(solver.products[solver.backend.send(draws)]).cross
    answer = sinkhorn(cross.clone())
    n_iter = int(answer.n_iter.max())
    again = [cross.clone() for _ in range(3)]
    took = min(seconds(lambda c: sinkhorn(c, overwrite=True), one) for one in again)
    # Largest, smallest, shift and exponential of the kernel, then two products an iteration.
    moved = cross.numel() * 4 * (2 + 4 + 1 + 2 * n_iter)
    return {
        "copy_terabytes_a_second": peak / 1e12,
        "transport_terabytes_a_second": moved / took / 1e12,
        "share_of_copy_bandwidth": moved / took / peak,
        "sinkhorn_iterations": n_iter,
        "sinkhorn_milliseconds": 1e3 * took,
    }


def same_labels(n_seeds: int) -> dict:
    """Fits on which GPU and CPU agree on every label."""
    equal = {}
    for name in (*SETS, "D4"):
        pairs = [(fit(name, s, 64, "cuda"), fit(name, s, 64, None)) for s in range(n_seeds)]
        equal[name] = sum(
            not error_rate(a.row_labels_, b.row_labels_)
            and not error_rate(a.column_labels_, b.column_labels_)
            for a, b in pairs
        )
    return {"seeds": n_seeds, "fits_with_equal_labels": equal}


def gromov() -> list[dict]:
    """CCOT-GW without the exact refinement, which is POT's and runs on the CPU."""
    matrices = {"D1": load_simulated("D1", random_state=0).data}
    home = data_home()
    if home is not None and (home / "ml-100k" / "u.data").exists():
        matrices["MovieLens-100K"] = ratings(home / "ml-100k" / "u.data")
    found = []
    for name, matrix in matrices.items():

        def run(device, matrix=matrix):
            return CCOTGW(exact_refinement=False, device=device).fit(matrix)

        gpu, cpu = run("cuda"), run(None)
        gap = float(np.abs(_centred(gpu.row_log_scaling_) - _centred(cpu.row_log_scaling_)).max())
        found.append(
            {
                "matrix": name,
                "seconds": min(seconds(run, "cuda") for _ in range(3)),
                "cpu_seconds": seconds(run, None),
                "largest_difference_of_log_scalings": gap,
            }
        )
        print(found[-1], flush=True)
    return found


def _centred(log_scaling: np.ndarray) -> np.ndarray:
    return log_scaling - log_scaling.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--batches", action="store_true", help="POT's batched solvers only")
    arguments = parser.parse_args()
    card = torch.cuda.get_device_properties(0)
    result = {
        "card": {
            "name": card.name,
            "gigabytes": card.total_memory / 2**30,
            "multiprocessors": card.multi_processor_count,
            "torch": torch.__version__,
        },
        "bandwidth": bandwidth(),
    }
    print(result, flush=True)
    result["pot_batches"] = pot_batches(arguments.draws)
    result["pot_gromov"] = pot_gromov(16)
    print(result["pot_gromov"], flush=True)
    if arguments.batches:
        store("gpu_batches", result)
        return
    result["draw_by_draw"] = loops(50)
    result["labels"] = same_labels(arguments.seeds)
    print(result["labels"], flush=True)
    result["gromov"] = gromov()
    result["protocol"] = protocol(arguments.sets, arguments.draws, arguments.threads)
    print(result["protocol"], flush=True)
    store("gpu", result)


if __name__ == "__main__":
    main()
