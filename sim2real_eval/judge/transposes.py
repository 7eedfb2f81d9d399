# SPDX-License-Identifier: Apache-2.0
"""Making a covariance symmetric with vector instructions, for the compiled loops.

Entry by entry that takes 105 loads and stores, and whoever reads a row as a vector soon after has
to wait until its single entries have arrived in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sim2real_eval.judge.rows import WIDTH

__all__ = ['mirror', 'mirror_left', 'settle']

_HALF = WIDTH // 2
_VECTOR = ir.VectorType(ir.DoubleType(), _HALF)
_LANES = ir.VectorType(ir.IntType(32), _HALF)
_CHOICE = ir.VectorType(ir.IntType(1), _HALF)
_BYTE, _WORD = ir.IntType(8), ir.IntType(16)
_ALIGNMENT = 8
# Of two vectors the even and odd entries, the even and odd pairs, the lower and upper halves.
_EVEN, _ODD = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
_EVEN_PAIRS, _ODD_PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
_LOWER, _UPPER = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


def _transposed(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """Transpose 8 x 8 entries in three rounds of eight shuffles."""

    def mix(a: Any, b: Any, lanes: Sequence[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(_LANES, list(lanes)))

    ones = [mix(rows[k & ~1], rows[k | 1], _ODD if k & 1 else _EVEN) for k in range(_HALF)]
    twos = [mix(ones[k & ~2], ones[k | 2], _ODD_PAIRS if k & 2 else _EVEN_PAIRS) for k in range(8)]
    return [mix(twos[k & ~4], twos[k | 4], _UPPER if k & 4 else _LOWER) for k in range(_HALF)]


def _symmetric(context: Any, builder: Any, matrix: Any, P: Any, take: Callable[..., Any]) -> None:
    """Replace, in each row, the lanes that `take` chooses by those of the transposed matrix.

    `take(row, half)` returns a vector of bits; None for no lane.
    """
    data = context.make_array(matrix)(context, builder, P).data
    places, blocks = {}, {}
    for row in range(WIDTH):
        for half in range(2):
            start = ir.Constant(ir.IntType(64), row * WIDTH + half * _HALF)
            pointer = builder.bitcast(builder.gep(data, [start]), _VECTOR.as_pointer())
            places[row, half] = pointer
            value = blocks[row, half] = builder.load(pointer)
            value.align = _ALIGNMENT
    for upper in range(2):
        for half in range(2):
            wanted = {row: take(row, half) for row in range(upper * _HALF, (upper + 1) * _HALF)}
            if all(choice is None for choice in wanted.values()):
                continue
            # Entry (row, lane) comes from (lane, row).
            columns = _transposed(builder, [blocks[half * _HALF + k, upper] for k in range(_HALF)])
            for row, choice in wanted.items():
                if choice is not None:
                    mixed = builder.select(choice, columns[row % _HALF], blocks[row, half])
                    builder.store(mixed, places[row, half]).align = _ALIGNMENT


def _mirror(columns: int) -> Any:
    def typed(_: Any, P: Any) -> Any:
        matrix = types.Array(types.float64, 2, 'C')
        if matrix != P:
            return None

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def take(row: int, half: int) -> Any:
                lanes = [half * _HALF + k < min(row, columns) for k in range(_HALF)]
                return ir.Constant(_CHOICE, lanes) if any(lanes) else None

            _symmetric(context, builder, matrix, arguments[0], take)
            return context.get_dummy_value()

        return types.void(matrix), code

    return typed


def _settle(_: Any, P: Any, measured: Any) -> Any:
    matrix = types.Array(types.float64, 2, 'C')
    if matrix != P or not isinstance(measured, types.Integer):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        P, measured = arguments
        bits = builder.trunc(measured, _WORD)

        def take(row: int, half: int) -> Any:
            # Of a measured row the columns right of it that are measured too; of another one those
            # that are measured and those left of it.
            left = ir.Constant(_WORD, (1 << row) - 1)
            right = ir.Constant(_WORD, 0xFFFF & ~((2 << row) - 1))
            own = builder.trunc(builder.lshr(bits, ir.Constant(_WORD, row)), ir.IntType(1))
            chosen = builder.select(own, builder.and_(bits, right), builder.or_(bits, left))
            part = builder.trunc(builder.lshr(chosen, ir.Constant(_WORD, half * _HALF)), _BYTE)
            return builder.bitcast(part, _CHOICE)

        _symmetric(context, builder, matrix, P, take)
        return context.get_dummy_value()

    return types.void(matrix, types.int64), code


mirror: Any = intrinsic(_mirror(WIDTH))
"""`mirror(P)`: the lower triangle becomes that of the upper one. P is (16, 16) float64."""

mirror_left: Any = intrinsic(_mirror(9))
"""`mirror_left(P)`: the same for columns 0 to 8 only."""

settle: Any = intrinsic(_settle)
"""`settle(P, measured)`: the columns of measured states (bits of the number) become their rows.

Where both states are measured the lower triangle counts, where none is the upper one.
"""
