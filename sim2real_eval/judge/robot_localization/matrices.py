# SPDX-License-Identifier: Apache-2.0
"""Sums of matrix rows as vector instructions, for the compiled loops.

The covariance has 15 rows of 15, padded to 16 so that a row fills the vectors of the machine.
numba does not vectorise inner loops of so few steps, and leaves one multiplication per entry and
instruction; these functions say outright that a row is one vector. Each entry is computed as a
scalar loop would: the same operations in the same order, no fused multiply-add.

Matrices are (n, 16) float64, contiguous. Neither row numbers nor shapes are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    'WIDTH',
    'add_rows',
    'add_with_column',
    'add_with_row',
    'mirror',
    'mirror_left',
    'set_row',
    'settle',
    'subtract_with_column',
    'subtract_with_row',
]

WIDTH = 16
"""Columns of the matrices; float64, contiguous."""

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_LANES = ir.VectorType(ir.IntType(32), WIDTH)
_ALIGNMENT = 8


def _row(context: Any, builder: Any, kind: Any, matrix: Any, row: Any) -> Any:
    """Return the pointer to a row as one vector."""
    data = context.make_array(kind)(context, builder, matrix).data
    start = builder.mul(row, ir.Constant(ir.IntType(64), WIDTH))
    return builder.bitcast(builder.gep(data, [start]), _VECTOR.as_pointer())


def _load(builder: Any, pointer: Any) -> Any:
    value = builder.load(pointer)
    value.align = _ALIGNMENT
    return value


def _everywhere(builder: Any, number: Any) -> Any:
    """Return a vector that holds one number in every lane."""
    empty = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(_LANES, [0] * WIDTH))


def _sum_of_rows(accumulate: bool) -> Any:
    def typed(_: Any, target: Any, i: Any, source: Any, rows: Any, factors: Any) -> Any:
        matrix = types.Array(types.float64, 2, 'C')
        count = getattr(rows, 'count', 0)
        if target != matrix or source != matrix or not count or factors.count != count:
            return None
        signature = types.void(
            matrix,
            types.int64,
            matrix,
            types.UniTuple(types.int64, count),
            types.UniTuple(types.float64, count),
        )

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, i, source, rows, factors = arguments
            goal = _row(context, builder, matrix, target, i)
            total = _load(builder, goal) if accumulate else None
            for k in range(count):
                row = builder.extract_value(rows, k)
                factor = _everywhere(builder, builder.extract_value(factors, k))
                term = builder.fmul(
                    factor, _load(builder, _row(context, builder, matrix, source, row))
                )
                total = term if total is None else builder.fadd(total, term)
            builder.store(total, goal).align = _ALIGNMENT
            return context.get_dummy_value()

        return signature, code

    return typed


def _sum_of_range(*, subtract: bool, column: bool, vector: bool = False) -> Any:
    def typed(
        _: Any, target: Any, i: Any, source: Any, first: Any, last: Any, factors: Any, at: Any
    ) -> Any:
        matrix = types.Array(types.float64, 2, 'C')
        goal_type = types.Array(types.float64, 1, 'C') if vector else matrix
        if target != goal_type or source != matrix or factors != matrix:
            return None
        signature = types.void(
            goal_type, types.int64, matrix, types.int64, types.int64, matrix, types.int64
        )

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, i, source, first, last, factors, at = arguments
            goal = _row(context, builder, goal_type, target, i)
            total = cgutils.alloca_once_value(builder, _load(builder, goal))
            array = context.make_array(matrix)(context, builder, factors)
            length = builder.extract_value(array.shape, 1)
            step = ir.Constant(ir.IntType(64), 1)
            with cgutils.for_range_slice(builder, first, last, step) as (k, _):
                row, col = (k, at) if column else (at, k)
                place = builder.gep(array.data, [builder.add(builder.mul(row, length), col)])
                factor = builder.load(place)
                # Most are zero where states do not depend on each other, as those that
                # `two_d_mode` holds at zero.
                with builder.if_then(builder.fcmp_unordered('!=', factor, factor.type(0.0))):
                    term = builder.fmul(
                        _everywhere(builder, factor),
                        _load(builder, _row(context, builder, matrix, source, k)),
                    )
                    combine = builder.fsub if subtract else builder.fadd
                    builder.store(combine(builder.load(total), term), total)
            builder.store(builder.load(total), goal).align = _ALIGNMENT
            return context.get_dummy_value()

        return signature, code

    return typed


set_row: Any = intrinsic(_sum_of_rows(accumulate=False))
"""`set_row(target, i, source, (a, b), (f, g))`: target[i] = f source[a] + g source[b], ..."""

add_rows: Any = intrinsic(_sum_of_rows(accumulate=True))
"""`add_rows(target, i, source, (a, b), (f, g))`: the same sum is added to target[i]."""

add_with_column: Any = intrinsic(_sum_of_range(subtract=False, column=True))
"""`add_with_column(target, i, source, first, last, factors, at)`: for k from first to last - 1 in
turn, factors[k, at] source[k] is added to target[i]. `factors` may have any width."""

add_with_row: Any = intrinsic(_sum_of_range(subtract=False, column=False, vector=True))
"""The same with factors[at, k], and a vector (16,) as the target; `i` is 0."""

subtract_with_column: Any = intrinsic(_sum_of_range(subtract=True, column=True))
"""`add_with_column`, subtracted."""

subtract_with_row: Any = intrinsic(_sum_of_range(subtract=True, column=False))
"""The same with factors[at, k]."""


# -------- Making a covariance symmetric with vector instructions, for the compiled loops.
#
# Entry by entry that takes 105 loads and stores, and whoever reads a row as a vector
# soon after has
# to wait until its single entries have arrived in the cache.

_HALF = WIDTH // 2
_VECTOR_TRANSPOSES = ir.VectorType(ir.DoubleType(), _HALF)
_LANES_TRANSPOSES = ir.VectorType(ir.IntType(32), _HALF)
_CHOICE = ir.VectorType(ir.IntType(1), _HALF)
_BYTE, _WORD = ir.IntType(8), ir.IntType(16)
# Of two vectors the even and odd entries, the even and odd pairs, the lower and upper halves.
_EVEN, _ODD = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
_EVEN_PAIRS, _ODD_PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
_LOWER, _UPPER = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


def _transposed(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """Transpose 8 x 8 entries in three rounds of eight shuffles."""

    def mix(a: Any, b: Any, lanes: Sequence[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(_LANES_TRANSPOSES, list(lanes)))

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
            pointer = builder.bitcast(builder.gep(data, [start]), _VECTOR_TRANSPOSES.as_pointer())
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
