# SPDX-License-Identifier: Apache-2.0
"""A DDS domain on this machine that nobody else is on."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import rclpy
from rclpy.context import Context

from sim2real_eval.common.errors import JudgeError

__all__ = ['free_domain', 'private_context']

# Ports of higher domains lie among those that Linux gives to whoever asks for any.
_DOMAINS = range(1, 102)
_OTHER_WAYS_OUT = ('ROS_LOCALHOST_ONLY', 'ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER')
_FIRST_PORT, _PORTS_PER_DOMAIN = 7400, 250
# Multicast discovery, which everybody shares, and what belongs to the first participant.
_PROBED = (0, 10)


@contextlib.contextmanager
def free_domain() -> Iterator[int]:
    """Hold a domain that no other process of ours holds and no foreign graph is on.

    A lock on a file tells our processes apart, and goes with the process that has it; the ports
    of the domain tell of all others.

    Raises
    ------
    JudgeError
        When all are taken.
    """
    offset = os.getpid()
    for number in range(len(_DOMAINS)):
        domain = _DOMAINS[(offset + number) % len(_DOMAINS)]
        lock = _locked(Path(tempfile.gettempdir(), f'sim2real_domain_{domain}.lock'))
        if lock is None:
            continue
        try:
            if _unused(domain):
                yield domain
                return
        finally:
            os.close(lock)
    raise JudgeError(
        f'ROS domains {_DOMAINS[0]} to {_DOMAINS[-1]} are all in use; end what runs on one'
    )


def _private(domain: int) -> dict[str, str]:
    """Return this process's environment, but on a domain that does not leave the machine."""
    kept = {name: value for name, value in os.environ.items() if name not in _OTHER_WAYS_OUT}
    return {
        **kept,
        'ROS_DOMAIN_ID': str(domain),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
    }


@contextlib.contextmanager
def private_context(domain: int) -> Iterator[Context]:
    """Provide a ROS context on a domain; processes started meanwhile are on it too."""
    context = Context()
    with _as_environment(_private(domain)):
        rclpy.init(args=[], context=context, domain_id=domain)
        try:
            yield context
        finally:
            rclpy.try_shutdown(context=context)


@contextlib.contextmanager
def _as_environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    changed = {*before.items()} ^ {*wanted.items()}
    _set(wanted, changed)
    try:
        yield
    finally:
        _set(before, changed)


def _set(wanted: Mapping[str, str], changed: Iterable[tuple[str, str]]) -> None:
    for name, _ in changed:
        if name in wanted:
            os.environ[name] = wanted[name]
        else:
            os.environ.pop(name, None)


def _locked(path: Path) -> int | None:
    """Return an open file that holds the lock, or None when another has it."""
    try:
        # In shared folders another's file may be opened for reading only, and not with O_CREAT.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _unused(domain: int) -> bool:
    for offset in _PROBED:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(('', _FIRST_PORT + _PORTS_PER_DOMAIN * domain + offset))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return False
    return True
