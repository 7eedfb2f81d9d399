# SPDX-License-Identifier: Apache-2.0
"""From samples with stamps to evenly spaced samples: repeats, gaps and jitter."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.characterization.signals import SignalFileError, Signals
from sim_sensors.measurements import IntArray
from sim_sensors.stamp_order import ahead_of_time

__all__ = ['LONGEST_FILLED', 'evenly_spaced']

LONGEST_FILLED = 5
"""Samples in a row that may be missing and are then interpolated."""
_FEWEST = 8


def evenly_spaced(signals: Signals) -> Signals:
    """Return signals without stamps, at a known rate, as an Allan analysis needs them.

    A single stamp ahead of its time is dropped, and repeated and backward ones are. Where up to
    `LONGEST_FILLED` samples are missing, straight lines go in; a longer gap cuts the record, and
    the longest piece is kept. What is left is taken as evenly spaced at its mean rate, whatever
    the jitter of the stamps: that of a driver's clock is not that of the sensor. All of it is told
    in notes.

    Raises
    ------
    SignalFileError
        When fewer than 8 samples are left.
    """
    if signals.stamp_ns is None:
        if len(signals) < _FEWEST:
            raise _too_few(signals, len(signals))
        return signals
    stamps, values, notes = signals.stamp_ns, signals.values, []
    if signals.motion is not None:
        # What happens to the samples happens to their motion.
        values = np.concatenate([values, signals.motion], axis=1)
    ahead = ahead_of_time(stamps)
    if ahead.any():
        notes.append(f'{int(ahead.sum())} samples with a stamp ahead of the next samples dropped')
        stamps, values = stamps[~ahead], values[~ahead]
    newest = np.maximum.accumulate(stamps)
    fresh = np.concatenate([[True], stamps[1:] > newest[:-1]])
    if not fresh.all():
        count = int((~fresh).sum())
        notes.append(f'{count} samples with a repeated or backward stamp dropped')
        stamps, values = stamps[fresh], values[fresh]
    if len(stamps) < _FEWEST:
        raise _too_few(signals.with_notes(*notes), len(stamps))
    steps = np.diff(stamps)
    period = float(np.median(steps))
    missing = _missing(steps, period)
    cuts = np.flatnonzero(missing > LONGEST_FILLED)
    if len(cuts):
        edges = np.concatenate([[0], cuts + 1, [len(stamps)]])
        longest = int(np.argmax(np.diff(edges)))
        begin, end = int(edges[longest]), int(edges[longest + 1])
        notes.append(
            f'{len(cuts)} gaps of up to {steps[cuts].max() * 1e-9:.3g} s cut the record; the '
            f'longest piece, {end - begin} of {len(stamps)} samples, is analysed'
        )
        stamps, values = stamps[begin:end], values[begin:end]
        missing = missing[begin : end - 1]
    holes = np.maximum(missing, 0)
    if holes.any():
        count = int(holes.sum())
        share = count / (len(stamps) + count)
        notes.append(
            f'{count} missing samples ({share:.2g} of all) interpolated, which lowers white noise '
            f'by about {share / 2:.1%}'
        )
        place = np.arange(len(stamps)) + np.concatenate([[0], np.cumsum(holes)])
        values = _filled(values, place)
    else:
        place = np.arange(len(stamps))
    if len(values) < _FEWEST:
        raise _too_few(signals.with_notes(*notes), len(values))
    rate = (len(values) - 1) / (float(stamps[-1] - stamps[0]) * 1e-9)
    jitter = _jitter(stamps, place, rate)
    if jitter.std() > 0.01e9 / rate:
        most = np.abs(jitter).max() * 1e-6
        notes.append(
            f'stamps jitter by {jitter.std() * 1e-6:.3g} ms (at most {most:.3g} ms) about '
            f'{rate:.6g} Hz; samples are taken as evenly spaced'
        )
    width = len(signals.axes)
    return dataclasses.replace(
        signals,
        values=values[:, :width],
        stamp_ns=None,
        rate=rate,
        notes=(*signals.notes, *notes),
        motion=None if signals.motion is None else np.asarray(values[:, width:], np.float64),
    )


def _too_few(signals: Signals, count: int) -> SignalFileError:
    left = f' ({"; ".join(signals.notes)})' if signals.notes else ''
    return SignalFileError(
        f'{signals.name}: {count} samples are too few{left}; must be {_FEWEST} or more'
    )


def _missing(steps: IntArray, period: float) -> IntArray:
    """Return how many samples are missing in each step.

    One late stamp makes a long step and a short one beside it, so two steps together count too.
    """
    pairs = np.full(len(steps) + 1, np.inf)
    pairs[1:-1] = steps[:-1] + steps[1:]
    lengths = np.minimum(steps, np.minimum(pairs[:-1], pairs[1:]) - period)
    return np.asarray(np.rint(lengths / period), dtype=np.int64) - 1


def _filled(values: NDArray[np.floating[Any]], place: IntArray) -> NDArray[np.floating[Any]]:
    grid = np.arange(place[-1] + 1)
    return np.stack([np.interp(grid, place, column) for column in values.T], axis=1)


def _jitter(stamps: IntArray, place: IntArray, rate: float) -> NDArray[np.float64]:
    """Return how far the stamps are from an even grid, ns."""
    off = (stamps - stamps[0]) - place * (1e9 / rate)
    return np.asarray(off - off.mean(), dtype=np.float64)
