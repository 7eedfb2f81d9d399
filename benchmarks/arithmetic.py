# SPDX-License-Identifier: Apache-2.0
"""What one core can do in double precision, and what a step of the judge's filter asks of it."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from measuring import seconds
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
CHAINS = 14
LOOPS = 2_000_000


def _typed(_: Any, loops: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.DoubleType(), LANES)
        factor, term = (ir.Constant(vector, [value] * LANES) for value in (0.999, 0.001))
        held = [
            cgutils.alloca_once_value(builder, ir.Constant(vector, [0.1 * k] * LANES))
            for k in range(CHAINS)
        ]
        with cgutils.for_range(builder, arguments[0]):
            for place in held:
                product = builder.fmul(builder.load(place), factor)
                builder.store(builder.fadd(product, term), place)
        total = builder.load(held[0])
        for place in held[1:]:
            total = builder.fadd(total, builder.load(place))
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return types.float64(types.int64), code


_work: Any = intrinsic(_typed)


@numba.njit
def _peak(loops: int) -> float:
    return _work(loops)


def peak_flops() -> float:
    """Multiplications and additions per second, in registers, as vectors of 8, not fused."""
    _peak(1)
    return 2.0 * LANES * CHAINS * LOOPS / min(seconds(lambda: _peak(LOOPS)) for _ in range(10))


def operations(m: int) -> dict[str, int]:
    """Floating-point operations of a prediction and of a correction by `m` states, as written.

    A row is 16 numbers. Counted by hand from `predict` and `passes` in `ekf`, and `correct` in
    `filter`; sines, divisions and roots count as one.
    """
    row = 16
    # M = F P has 50 terms in 9 rows; then Q, and P = M F' entry by entry in the upper triangle.
    predict = row * (2 * 50 - 9 + 6 * 2 + 9 * 3) + 9 * 3 * 2 + 6 * 24 + 6 * 18 + 150
    pairs = m * (m - 1) // 2
    gate = 6 * pairs + m * (m - 1) * (m - 2) // 3 + 7 * m
    whiten, state, back = 2 * pairs + m, 2 * m, 2 * pairs
    rest, measured = (15 - m) * 2 * m, m * (2 * m - 1)
    return {
        'predict': predict,
        'gate': gate,
        'correct': gate + row * (whiten + state + rest + back + measured),
    }
