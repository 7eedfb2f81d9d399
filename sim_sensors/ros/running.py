# SPDX-License-Identifier: Apache-2.0
"""How the executables run: one executor, one line and status 2 for what a user can act on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from sim_sensors.errors import Sim2RealError

__all__ = ['run']


def run(
    name: str,
    make: Callable[[], Sequence[Node]],
    args: Sequence[str] | None = None,
    finished: Callable[[], bool] = lambda: False,
) -> int:
    """Make nodes and spin them in one executor until the process is stopped.

    Parameters
    ----------
    name : str
        Of the executable, for messages.
    make : callable
        Makes the nodes.
    args : sequence of str or None
        Command line without the name of the program; None: that of the process.
    finished : callable
        Asked after each callback; True ends the process with status 0.

    Returns
    -------
    int
        Exit status: 0, or 2 when a parameter or argument is wrong.
    """
    try:
        rclpy.init(args=None if args is None else [name, *args])
    except RuntimeError as error:
        # rcl's parser of --ros-args: says what it stumbled over, and then where in its source.
        return _refuse(name, str(error))
    executor = SingleThreadedExecutor()
    try:
        for node in make():
            executor.add_node(node)
        while rclpy.ok() and not finished():
            executor.spin_once()
    except Sim2RealError as error:
        return _refuse(name, str(error))
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    except (RuntimeError, SystemError):
        # What a callback was about to do when the signal came, it can do no more: rcl says so. And
        # code that numba compiled makes a SystemError of the KeyboardInterrupt that comes within.
        if rclpy.ok():
            raise
        return 0
    finally:
        executor.shutdown()
        rclpy.try_shutdown()
    return 0


def _refuse(name: str, problem: str) -> int:
    print(f'{name}: error: {problem.splitlines()[0]}', file=sys.stderr)
    return 2
