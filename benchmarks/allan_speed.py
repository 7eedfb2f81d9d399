# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Six hours of an IMU, six axes, fifty averaging times: ours against allantools in turns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import parse, seconds, spread, table, write

from sim2real_eval.characterization.allan import allan_curve, averaging_factors
from sim2real_eval.characterization.allan_fit import fit_terms
from sim_sensors.core.measurements import FloatArray

SAMPLES, AXES, RATE = 2_160_000, 6, 100.0
TAUS = 50
# Some factors round to the same; so many are asked for that 50 are left.
GRID = averaging_factors(SAMPLES, 52)


def values() -> FloatArray:
    """Double precision: allantools sums in that of its input, and errs by 1e-5 in single."""
    return np.random.default_rng(1).standard_normal((AXES, SAMPLES))


def ours(data: FloatArray) -> None:
    for axis in data:
        allan_curve(axis, RATE, GRID)


def theirs(data: FloatArray) -> None:
    import allantools

    for axis in data:
        allantools.oadev(axis, rate=RATE, data_type='freq', taus=GRID / RATE)


def memory(name: str) -> dict[str, float]:
    """Largest resident size of a process that does nothing else, and what arrays took in it."""
    code = (
        'import sys\n'
        f'sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}\n'
        'import tracemalloc\n'
        'import allan_speed as b\n'
        'data = b.values()\n'
        f'b.{name}(data[:1])\n'
        'resident = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]\n'
        'tracemalloc.start()\n'
        f'b.{name}(data)\n'
        'print(int(resident) * 1024, tracemalloc.get_traced_memory()[1])\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    resident, arrays = map(float, done.stdout.split())
    return {'resident_mb': resident / 1e6, 'beyond_the_data_mb': arrays / 1e6}


def main() -> None:
    options = parse(__doc__ or '', repetitions=5)
    data = values()
    import allantools

    grid = GRID[::7]
    expected = allantools.oadev(data[0], rate=RATE, data_type='freq', taus=grid / RATE)[1]
    found = allan_curve(data[0], RATE, grid).deviation
    difference = float(np.abs(found / expected - 1.0).max())
    if difference > 1e-12:
        sys.exit(f'ours and allantools differ by {difference:.2g}; nothing is compared')
    times: dict[str, list[float]] = {'ours': [], 'allantools': []}
    ratios = []
    for _ in range(options.repetitions):
        mine, other = seconds(lambda: ours(data)), seconds(lambda: theirs(data))
        times['ours'].append(mine)
        times['allantools'].append(other)
        ratios.append(other / mine)
    curve = allan_curve(data[0], RATE)
    fit_terms(curve)
    fits = [seconds(lambda: fit_terms(curve)) for _ in range(options.repetitions)]
    result: dict[str, Any] = {
        'samples': SAMPLES,
        'axes': AXES,
        'averaging_times': len(GRID),
        'largest_difference': difference,
        'seconds': {name: spread(found) for name, found in times.items()},
        'faster_by': spread(ratios),
        'fit_seconds': spread(fits),
        'memory': {name: memory(name) for name in ('ours', 'theirs')},
    }
    table(
        (f'{SAMPLES:,} x {AXES} x {len(GRID)}', 'seconds', 'resident MB', 'beyond the data MB'),
        [
            (
                name,
                f'{result["seconds"][name]["median"]:.2f}',
                f'{result["memory"][key]["resident_mb"]:.0f}',
                f'{result["memory"][key]["beyond_the_data_mb"]:.0f}',
            )
            for name, key in (('ours', 'ours'), ('allantools', 'theirs'))
        ],
    )
    by = result['faster_by']
    print(
        f'faster by {by["median"]:.1f} ({by["lower_quartile"]:.1f} - {by["upper_quartile"]:.1f}); '
        f'differ by {difference:.1g}; a fit takes {result["fit_seconds"]["median"] * 1e3:.0f} ms'
    )
    write(options.out, 'allan_speed', result)


if __name__ == '__main__':
    main()
