"""Measuring by ratios: what is measured and its floor take turns in one run, so that noise hits both alike."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Work = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Figure:
    """`floor_ms` is the same work without the product, `ratio` how many times that the product takes; both are
    medians of one run. `per_s` counts units of work (turns, calls or messages, as the name says)."""

    name: str
    n: int
    p50_ms: float
    p95_ms: float
    per_s: float
    floor_ms: float
    ratio: float
    note: str = ""


async def against(
    name: str, work: Work, floor: Work, *, rounds: int, each: int = 1, units: int = 1, note: str = ""
) -> Figure:
    """Time `rounds` batches of `each` runs of both, in turn; `units` is what one run counts for in `per_s`."""
    ours: list[float] = []
    bare: list[float] = []
    await _time(work, each)
    await _time(floor, each)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            bare.append(await _time(floor, each))
            ours.append(await _time(work, each))
    finally:
        gc.enable()
    p50 = statistics.median(ours)
    p95 = statistics.quantiles(ours, n=20)[-1] if len(ours) > 1 else p50
    floor_p50 = statistics.median(bare)
    return Figure(
        name,
        rounds * each,
        round(p50 * 1000, 4),
        round(p95 * 1000, 4),
        round(units / p50, 1),
        round(floor_p50 * 1000, 4),
        round(p50 / floor_p50, 2),
        note,
    )


async def _time(work: Work, each: int) -> float:
    began = time.perf_counter()
    for _ in range(each):
        await work()
    elapsed = time.perf_counter() - began
    await asyncio.sleep(0)
    return elapsed / each
