# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Order of samples and pieces of a record whose stamps may be wrong.

Samples are never dropped because of their stamps alone: only copies are, whose values are those of
the sample before. A clock that restarts and long gaps cut the record.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import IntArray
from sim_sensors.motion.sampling import ahead_of_time
from . import findings

LONGEST_FILLED = 5
"""Samples in a row that may be missing and are then interpolated."""

# A step shorter than this share of the ordinary step says nothing about the time of the sample.
_TINY = 0.2
# Beyond this share of tiny steps the stamps do not place the samples.
_MAX_TINY = 0.05
# Copies agree to this share of the difference of other neighbours; drivers add rounding errors.
_COPY = 0.01
# Ordinary steps are at least this share of all steps, and so many.
_MIN_ORDINARY, _MIN_ORDINARY_SHARE = 3, 1e-3


class StampError(Sim2RealError):
    """The stamps do not tell the rate of the samples."""


@dataclasses.dataclass(frozen=True, eq=False)
class OrderedSamples:
    """Samples of one piece of a record, in the order of time.

    Attributes
    ----------
    stamp_ns : (n,) int64
        Increasing, or equal where the driver repeats stamps.
    values : (n, columns) float
    place : (n,) int
        Numbers of the samples on an even grid; numbers are left out where samples are missing.
    notes : tuple of Finding
        Repairs.
    """

    stamp_ns: IntArray
    values: NDArray[Any]
    place: IntArray
    notes: tuple[Finding, ...]

    @property
    def rate(self) -> float:
        """Rate of the grid, Hz: the slope of the stamps over the numbers of the samples."""
        elapsed = (self.stamp_ns - self.stamp_ns[0]).astype(np.float64)
        place = self.place - self.place.mean()
        rate = 1e9 * (place @ place) / (place @ (elapsed - elapsed.mean()))
        # Rounding errors of the sums are in the digits beyond.
        return float(f'{rate:.12g}')


def ordinary_step(stamp_ns: IntArray) -> float:
    """Return the ordinary forward step of stamps `(n,)`, ns; 0 if no stamp is later than another.

    Half of the time passes in steps no longer than this. Rare long steps, the gaps, are ignored,
    and tiny steps within bursts hardly count.
    """
    steps = np.sort(np.diff(stamp_ns))
    steps = steps[np.searchsorted(steps, 1) :].astype(np.float64)
    fewest = max(_MIN_ORDINARY, _MIN_ORDINARY_SHARE * len(steps))
    while len(steps):
        passed = np.cumsum(steps)
        step = float(steps[np.searchsorted(passed, 0.5 * passed[-1])])
        below = int(np.searchsorted(steps, 0.5 * step))
        if len(steps) - below >= fewest or below == 0:
            return step
        steps = steps[:below]
    return 0.0


def order_samples(stamp_ns: IntArray, values: NDArray[Any]) -> OrderedSamples:
    """Return the longest piece of a record without restarts and long gaps, in order.

    `stamp_ns` are `(n,)` and `values` `(n, columns)`, n >= 2. StampError if the stamps do not
    increase.
    """
    notes: list[Finding] = []
    stamps = np.array(stamp_ns, np.int64)
    ahead = ahead_of_time(stamps)
    step = ordinary_step(stamps[~ahead])
    if not step:
        raise StampError('no stamp is later than the one before it')
    if ahead.any():
        notes.append(findings.AHEAD(count=ahead.sum()))
        index = np.arange(len(stamps))
        late = np.interp(index[ahead], index[~ahead], (stamps[~ahead] - stamps[-1]).astype(float))
        stamps[ahead] = np.rint(late).astype(np.int64) + stamps[-1]
        if ahead[0]:
            stamps[0] = stamps[1] - round(step)
    copied = _copies(stamps, values, step)
    if copied.any():
        delays = np.diff(stamps)[copied[1:]]
        delay = float(np.median(np.abs(delays))) * 1e-6
        notes.append(findings.COPIES(count=copied.sum(), samples=len(stamps), delay=delay))
        stamps, values = stamps[~copied], values[~copied]
    stamps, values = _after_restarts(stamps, values, notes)
    backward = stamps[1:] < np.maximum.accumulate(stamps)[:-1]
    if backward.any():
        notes.append(findings.OUT_OF_ORDER(count=backward.sum()))
        order = np.argsort(stamps, kind='stable')
        stamps, values = stamps[order], values[order]
    return _longest_piece(stamps, values, notes)


def _copies(stamps: IntArray, values: NDArray[Any], step: float) -> NDArray[np.bool_]:
    """Return a mask `(n,)` of samples that repeat the one before, with a stamp close to its.

    Coarse values are often equal by chance. Then they are copies only if nearly all samples with
    such stamps repeat the one before.
    """
    steps = np.diff(stamps)
    close = np.abs(steps) < _TINY * step
    copied = np.zeros(len(stamps), np.bool_)
    if not close.any():
        return copied
    changes = np.abs(np.diff(values.astype(np.float64), axis=0))
    ordinary = changes[~close]
    typical = np.sqrt((ordinary**2).mean(axis=0)) if len(ordinary) else np.zeros(values.shape[1])
    alike: NDArray[np.bool_] = np.all(changes <= _COPY * typical, axis=1)
    by_chance = float(alike[~close].mean()) if len(ordinary) else 0.0
    among_close = float(alike[close].mean())
    if by_chance < _COPY or 1.0 - among_close < 0.1 * (1.0 - by_chance):
        copied[1:] = close & alike
    return copied


def _after_restarts(
    stamps: IntArray, values: NDArray[Any], notes: list[Finding]
) -> tuple[IntArray, NDArray[Any]]:
    """Return the longest piece between restarts of the clock.

    A clock restarts where the next samples are all earlier. Single samples that come late are out
    of order, and no restart.
    """
    latest = stamps[1:].copy()
    for k in range(1, LONGEST_FILLED + 1):
        latest[:-k] = np.maximum(latest[:-k], stamps[1 + k :])
    cuts = np.flatnonzero(latest < stamps[:-1])
    if not len(cuts):
        return stamps, values
    begin, end = _longest(cuts, len(stamps))
    back = float((stamps[cuts] - stamps[cuts + 1]).max()) * 1e-9
    notes.append(
        findings.RESTARTED(count=len(cuts), back=back, kept=end - begin, samples=len(stamps))
    )
    return stamps[begin:end], values[begin:end]


def _longest(cuts: IntArray, count: int) -> tuple[int, int]:
    """Return the first sample of the longest piece, and the one after its last."""
    edges = np.concatenate([[0], cuts + 1, [count]])
    longest = int(np.argmax(np.diff(edges)))
    return int(edges[longest]), int(edges[longest + 1])


def _longest_piece(stamps: IntArray, values: NDArray[Any], notes: list[Finding]) -> OrderedSamples:
    """Cut a record at long gaps and number the samples of the longest piece."""
    if len(stamps) < 2 or not (step := ordinary_step(stamps)):
        return OrderedSamples(stamps[:1], values[:1], np.arange(len(stamps[:1])), tuple(notes))
    steps = np.diff(stamps)
    tiny = steps < _TINY * step
    in_bursts = bool(np.count_nonzero(tiny) > _MAX_TINY * len(steps))
    if in_bursts:
        missing = np.asarray(np.rint(steps / step), dtype=np.int64) - 1
    else:
        missing = _missing(steps, float(np.median(steps[~tiny])))
    cuts = np.flatnonzero(missing > LONGEST_FILLED)
    if len(cuts):
        begin, end = _longest(cuts, len(stamps))
        gaps = {'count': len(cuts), 'longest': steps[cuts].max() * 1e-9}
        notes.append(findings.CUT(**gaps, kept=end - begin, samples=len(stamps)))
        stamps, values = stamps[begin:end], values[begin:end]
        missing, tiny = missing[begin : end - 1], tiny[begin : end - 1]
    if len(stamps) > 1 and stamps[-1] == stamps[0]:
        raise StampError('all stamps of the longest piece are equal')
    holes = np.zeros(len(missing), np.int64) if in_bursts else np.maximum(missing, 0)
    place = np.arange(len(stamps)) + np.concatenate([[0], np.cumsum(holes)])
    samples = OrderedSamples(stamps, values, place, ())
    repeated = tiny if in_bursts else np.diff(stamps) == 0
    if repeated.any():
        share = float(repeated.mean())
        rate = samples.rate
        notes.append(findings.REPEATED(count=repeated.sum(), share=share, rate=rate))
    return dataclasses.replace(samples, notes=tuple(notes))


def _missing(steps: IntArray, period: float) -> IntArray:
    """Return how many samples are missing in each step.

    Late stamps make a long step and short ones soon after it; early stamps make short steps and a
    long one soon after them. These steps are therefore counted together.
    """
    lengths = steps.astype(np.float64)
    end = np.full(1, np.inf)
    pairs = np.concatenate([end, lengths[:-1] + lengths[1:], end]) - period
    shortest = np.minimum(lengths, np.minimum(pairs[:-1], pairs[1:]))
    for direction in (1, -1):
        long = np.flatnonzero(lengths > 1.5 * period)
        total, at, ordinary = lengths[long], long + direction, np.zeros(len(long), np.int64)
        while len(at):
            inside = (at >= 0) & (at < len(steps)) & (ordinary <= LONGEST_FILLED)
            long, at, total, ordinary = long[inside], at[inside], total[inside], ordinary[inside]
            total = total + lengths[at] - period
            short = lengths[at] < 0.5 * period
            shortest[long[short]] = np.minimum(shortest[long[short]], total[short])
            ordinary = np.where(short, 0, ordinary + 1)
            at = at + direction
    return np.asarray(np.rint(shortest / period), dtype=np.int64) - 1
