# SPDX-License-Identifier: Apache-2.0
"""All commands that write, small, for `killing.py`."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Verb:
    """A command that writes, and what it writes: below the folder it is given in.

    With --overwrite it finds what the words `older` wrote. A command that `continues` leaves, when
    it is interrupted, those of its files that are whole.
    """

    words: tuple[str, ...]
    writes: str
    older: tuple[str, ...] = ()
    continues: bool = False

    @property
    def name(self) -> str:
        return ' '.join([*self.words[:1], *(['--overwrite'] if self.older else [])])


def _verb(line: str, writes: str = 'out', **more: Any) -> Verb:
    return Verb(tuple(line.split()), writes, **more)


def _again(line: str, older: tuple[str, str], writes: str = 'out', **more: Any) -> Verb:
    """Return a command that replaces what it wrote with another option."""
    words = (*line.split(), '--overwrite')
    return Verb(words, writes, tuple(line.replace(*older).split()), **more)


PREPARED = (
    _verb(
        'simulate --motion drive_line --duration 4 --runs 2 --gps ch_rw --imu airsim --out bags'
    ),
    _verb('simulate --motion standstill --duration 40 --gps ch_rw --imu chrono --out still'),
    _verb('vepd --real bags/line_1 --models ch_rw --jobs 1 --resamples 100 --out study'),
)
"""What commands read; each is made for those that name it."""
_VEPD = 'vepd --real bags/line_1 --models ch_rw,ch_gauss --jobs 1 --resamples 100 --out out'
VERBS = (
    _verb(
        'simulate --motion circle --duration 3 --runs 2 --gps ch_rw --imu chrono --out out',
        continues=True,
    ),
    _verb(_VEPD, continues=True),
    _again(_VEPD, ('ch_rw,', ''), continues=True),
    _verb(
        'vepd --real bags/line_1 bags/line_2 --models ch_rw --jobs 2 --resamples 100 --out out',
        continues=True,
    ),
    _verb(
        'simulate --truth bags/line_1 bags/line_2 --gps ch_rw --storage csv --out out',
        continues=True,
    ),
    _verb(
        'simulate --truth bags/line_1 --runs 2 --mag bmm150 --storage sqlite3 --out out',
        continues=True,
    ),
    _verb('judge bags/line_1 bags/line_2 --config clean --out out', continues=True),
    _verb('judge bags/line_1 --config clean --consistency --out out.csv', 'out.csv'),
    _verb('compare --real bags/line_1 --models ch_rw --imu chrono --jobs 1 --out out'),
    _again(
        'compare --real bags/line_1 --models ch_rw --imu chrono --jobs 1 --out out',
        ('ch_rw', 'ch_gauss'),
    ),
    _verb('characterize still/standstill_1 --out out'),
    _again('characterize still/standstill_1 --out out', ('--out', '--seed 5 --out')),
    _verb('allan still/standstill_1 --out out'),
    _again('allan still/standstill_1 --out out', ('--out', '--moving keep --out')),
    _verb(
        'fit --real bags/line_1 bags/line_2 --tune gps.noise.std=0.1:1 --gps ch_gauss '
        '--imu chrono --candidates 8 --resamples 100 --jobs 1 --out out'
    ),
    _verb(
        'tune bags/line_1 bags/line_2 --parameters process_noise_covariance.position --blocks 6 '
        '--warmup 0.5 --jobs 1 --out out'
    ),
    _verb('follow bags/line_1 --controllers yaw_pid --gps ch_rw --imu chrono --out out'),
    _again(
        'follow bags/line_1 --controllers yaw_pid --gps ch_rw --out out',
        ('yaw_pid', 'yaw_pid,nonlinear'),
    ),
    _verb('scenario --runs 20 --out out'),
    _again('scenario --runs 20 --out out', ('--out', '--seed 3 --out')),
    _verb('attitude --runs 2 --duration 5 --camera none --jobs 1 --out out'),
    _again('attitude --runs 2 --duration 5 --camera none --jobs 1 --out out', ('5', '6')),
    _verb('wheels --models differential --runs 2 --out out'),
    _again('wheels --models differential --runs 2 --out out', ('--runs 2', '--runs 3')),
    _verb('world default --out out.png', 'out.png'),
    _verb('check bags/line_1 --plot out.png', 'out.png'),
    _verb('gate study --max-vepd 100 --junit out.xml', 'out.xml'),
    _verb('report study --out page/report.html --mcap page/bags', 'page', continues=True),
    _again('report study --out page/report.html --mcap page/bags', ('', ''), 'page'),
    _verb('reference bags/line_1 --replace-truth --out out'),
    _verb(
        'study fix_rates --real bags/line_1 --judge-config clean --jobs 1 --out out',
        continues=True,
    ),
    _verb(
        'sensitivity --errors gps_noise --gps ch_gauss --runs 2 --draws 4 --judge-config clean '
        '--jobs 1 --out out'
    ),
    _verb('demo --runs 1 --jobs 1 --out out', continues=True),
)
