"""How figures are taken and shown: warm-ups, interleaved runs, medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure; seconds unless ``unit`` says otherwise."""

    work: str
    value: float
    unit: str = "s"
    target: str = ""
    note: str = ""


def show(title: str, figures: Sequence[Figure]) -> None:
    """Prints figures as a table."""
    print(f"\n## {title}\n")
    print("| work | measured | aim | note |")
    print("|---|---|---|---|")
    for f in figures:
        print(f"| {f.work} | {f.value:.4g} {f.unit} | {f.target} | {f.note} |", flush=True)


def timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def median(run: Callable[[], object], runs: int, warmups: int = 1) -> float:
    """Median of several runs after warm-ups."""
    for _ in range(warmups):
        run()
    return statistics.median(timed(run) for _ in range(runs))


def interleaved(
    first: Callable[[], object], second: Callable[[], object], pairs: int, warmups: int = 1
) -> tuple[float, float, float]:
    """Medians of two works run in turn (A B A B ...), and the median of the ratios A/B."""
    for _ in range(warmups):
        first()
        second()
    a: list[float] = []
    b: list[float] = []
    for _ in range(pairs):
        a.append(timed(first))
        b.append(timed(second))
    ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
    return statistics.median(a), statistics.median(b), ratio


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
