# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of every reader with randomly changed inputs; `make fuzz` runs it for a time.

A reader may accept its input, or refuse it with a `Sim2RealError` of one printable line. It may
not raise another exception, warn, or take longer than 10 s of processor time. The process may not
grow by 1 GB. Inputs that break a rule are saved in the folder `fuzz_found/`.

    python test/fuzzing.py --seconds 60 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from fuzz_targets import Target, targets

from sim_sensors.core.errors import Sim2RealError

LONGEST_S = 10.0
LARGEST_BYTES = 1 << 30
_HEARTBEAT_S = 30.0

_NUMBERS = (
    *(b'0', b'-1', b'1e300', b'-1e308', b'1e-300', b'.inf', b'.nan', b'nan', b'1_000', b'0x10'),
    *(b'9' * 400, b'1' + b'0' * 400, b'18446744073709551616', b'-9223372036854775809', b'1:30'),
    *('١٢٣'.encode(), b'1e', b'+', b'0.0', b'1e15', b'3.5e38', b'1' * 100_000 + b'x'),
    *(b'1:' * 50_000 + b'1', b'0.' + b'1' * 100_000),
)
_WORDS = (
    *(b'!!timestamp 1', b'!!int ""', b'!!binary "?"', b'!!python/object:os.system x', b'null'),
    *(b'&a [*a]', b'*a', b'&a', b'<<: *a', b'[', b'{', b'}', b']', b':', b'- ', b'\n', b'"', b"'"),
    *(b'true', b'~', b'[]', b'{}', b'[1, 2, 3]', b'{a: 1}', b'=HYPERLINK("x")', b'%s', b'{0}'),
    *(b'\x00', b'\x1b[31m', b'\xff\xfe', '\u202e'.encode(), b'A' * 5000, b'../../etc/passwd'),
)


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return data with a few random changes: of bits, of numbers, of words, of whole lines."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(8):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + rng.choice((1, 2, 8, 64)) :]
            case 2:
                data = data[:at] + rng.choice(_WORDS) + data[at:]
            case 3:
                lines = data.split(b'\n')
                first_line, second_line = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines.insert(first_line, lines[second_line])
                data = b'\n'.join(lines)
            case 4:
                lines = data.split(b'\n')
                del lines[rng.randrange(len(lines))]
                data = b'\n'.join(lines)
            case _:
                data = _with_another_value(data, rng)
    return data


def _with_another_value(data: bytes, rng: random.Random) -> bytes:
    """Put something else in the place of a value: what stands between two separators."""
    lines = data.split(b'\n')
    index = rng.randrange(len(lines))
    line = lines[index]
    separators = [k for k, byte in enumerate(line) if byte in b':,[ ']
    start = rng.choice(separators) + 1 if separators else 0
    end = min([k for k in separators if k > start] or [len(line)])
    value = rng.choice(_NUMBERS if rng.random() < 0.7 else _WORDS)
    lines[index] = line[:start] + b' ' + value + line[end:]
    return b'\n'.join(lines)


class _TooLong(BaseException):
    """Raised within a reader by the alarm; no reader may catch it."""


def _on_alarm(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def run(target: Target, rng: random.Random, scratch: Path) -> tuple[str, Path]:
    """Give a reader one changed input; return what is wrong with its answer, and the input."""
    seed = rng.choice(target.seeds)
    place = scratch / seed.name
    if seed.is_dir():
        shutil.copytree(seed, place)
        file = rng.choice([path for path in sorted(place.rglob('*')) if path.is_file()])
        file.write_bytes(changed(file.read_bytes(), rng))
    else:
        place.write_bytes(changed(seed.read_bytes(), rng))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Of this process alone: another may have the machine.
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            target.read(place)
    except Sim2RealError as error:
        text = str(error)
        if not text.isprintable() or not 0 < len(text) < 3000:
            return f'not one clean line: {text[:200]!r}', place
    except _TooLong:
        return f'took longer than {LONGEST_S:g} s', place
    except Exception:
        return traceback.format_exc(), place
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return (f'grew by {grown >> 20} MiB' if grown > LARGEST_BYTES else ''), place


@contextlib.contextmanager
def prepared() -> Iterator[list[Target]]:
    """Provide all targets, with their recordings in a folder that is removed."""
    shared = Path('/dev/shm')
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield targets(Path(folder))


def fuzz(
    seconds: float,
    seed: int,
    keep: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[Counter[str], list[str]]:
    """Change inputs for a time; return how many of each kind, and what was wrong, each once.

    `progress` is told every half minute how many cases and defects there were, and how long it
    still takes.
    """
    counts, problems = Counter[str](), dict[str, str]()
    before = signal.signal(signal.SIGVTALRM, _on_alarm)
    try:
        with prepared() as targets:
            for target in targets:
                # The first call compiles and imports, so it is not timed.
                target.read(target.seeds[0])
            last_report = time.monotonic()
            deadline = last_report + seconds
            # A sequence for each: which comes next depends on time.
            rngs = {target.name: random.Random(f'{seed} {target.name}') for target in targets}
            spent = dict.fromkeys(rngs, 0.0)
            parent = targets[0].seeds[0].parent
            while (began := time.monotonic()) < deadline:
                # All have the same time: what is read fast is changed more often.
                target = min(targets, key=lambda candidate: spent[candidate.name])
                with tempfile.TemporaryDirectory(dir=parent) as scratch:
                    problem, place = run(target, rngs[target.name], Path(scratch))
                    counts[target.name] += 1
                    # The same line of the same module is the same defect.
                    where = problem.strip().splitlines()[-3:] if problem else []
                    place_text = ' '.join([target.name, *where[:1]])
                    mark = hashlib.sha256(place_text.encode()).hexdigest()[:8]
                    if problem and mark not in problems:
                        problems[mark] = f'{target.name}: {problem}'
                        if keep is not None:
                            _keep(place, keep / mark)
                ended = time.monotonic()
                spent[target.name] += ended - began
                if ended > last_report + _HEARTBEAT_S:
                    last_report = ended
                    progress(
                        f'{sum(counts.values()):,} cases, {len(problems)} defects, '
                        f'{max(deadline - ended, 0.0):.0f} s to go'
                    )
    finally:
        signal.signal(signal.SIGVTALRM, before)
    return counts, list(problems.values())


def _keep(place: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        shutil.copytree(place, target / place.name, dirs_exist_ok=True)
    else:
        shutil.copy(place, target)


def main() -> int:
    """Fuzz for some seconds; return 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--seed', type=int, default=int(time.time()))
    options = parser.parse_args()
    report = functools.partial(print, file=sys.stderr, flush=True)
    counts, problems = fuzz(options.seconds, options.seed, Path('fuzz_found'), report)
    for problem in problems:
        print(f'{problem}\n')
    print(f'seed {options.seed}: {sum(counts.values())} cases, {len(problems)} defects; ', end='')
    print(', '.join(f'{name} {count}' for name, count in sorted(counts.items())))
    return bool(problems)


if __name__ == '__main__':
    sys.exit(main())
