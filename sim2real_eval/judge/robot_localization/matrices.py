# SPDX-License-Identifier: Apache-2.0
"""Sums of matrix rows as vector instructions, and symmetry, for the compiled loops.

The covariance has 15 rows of 15, padded to 16 so that a row fills the vectors of the machine.
numba does not vectorise inner loops of so few steps, and leaves one multiplication per entry and
instruction; the sums say outright that a row is one vector. With plain loops a run of 30 s takes
12 to 37 % longer, with ukf_node 47 %. Each entry is computed as a scalar loop would: the same
operations in the same order, no fused multiply-add.

Matrices are (n, 16) float64, contiguous. Neither row numbers nor shapes are checked.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray

WIDTH = 16
"""Columns of the matrices; float64, contiguous."""

_STATES = WIDTH - 1
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


@kernel
def mirror(P: FloatArray) -> None:
    """Let the lower triangle become that of the upper one."""
    for i in range(1, _STATES):
        for j in range(i):
            P[i, j] = P[j, i]


@kernel
def mirror_left(P: FloatArray) -> None:
    """Do so for columns 0 to 8 only."""
    for i in range(1, _STATES):
        for j in range(min(i, 9)):
            P[i, j] = P[j, i]


@kernel
def settle(P: FloatArray, measured: int) -> None:
    """Let the columns of measured states (bits of the number) become their rows.

    Where both states are measured the lower triangle counts, where none is the upper one.
    """
    for j in range(1, _STATES):
        if measured >> j & 1:
            for i in range(j):
                P[i, j] = P[j, i]
        else:
            for i in range(j):
                P[j, i] = P[i, j]
