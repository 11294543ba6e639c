"""Loops over lanes of eight float32, written as LLVM vectors because numba does not find them.

A *lane* is one ranking: a document transform with IDF off or on. Lanes come in groups of eight:
four transforms with IDF off, then the same four with IDF on. Every function takes as its first
argument a tuple whose length is the number of groups, so that each number of groups is compiled
once, and cached, on its own. Accumulators and scores have the shape (documents, 8 * groups),
transforms (postings, 4 * groups), C order, float32. Nothing here checks bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic as _intrinsic

# Neither is typed in a way that a checker could follow.
cgutils: Any = _cgutils
intrinsic: Any = _intrinsic

SMALLEST = 2.0**-60
"""Transforms and query weights are kept at least this large, so that no product underflows."""

MATCH_WIDTH = 64
"""`first_equal` compares this many ids at a time."""

UNROLLED_DOCUMENTS = 4
"""`scan` looks at this many documents at a time."""

_FLOAT, _INT, _SHORT = ir.FloatType(), ir.IntType(32), ir.IntType(16)
_FLOAT8, _INT8 = ir.VectorType(_FLOAT, 8), ir.VectorType(_INT, 8)
_FLOAT4 = ir.VectorType(_FLOAT, 4)


def _has_fused_multiply_add() -> bool:
    try:
        features = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:
        return False
    return bool(features.get("fma") or features.get("neon"))


_FUSED = _has_fused_multiply_add()


class _Emitter:
    """Shorthands for building vector loops inside one intrinsic."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        self.signature, self.arguments = signature, arguments
        first = signature.args[0]
        self.groups = len(first) if isinstance(first, types.BaseTuple) else 0
        self.word = context.get_value_type(types.intp)

    def data(self, position: int) -> Any:
        """The data pointer of the array that is argument `position`."""
        kind = self.signature.args[position]
        return self.context.make_array(kind)(
            self.context, self.builder, self.arguments[position]
        ).data

    def at(self, pointer: Any, index: Any, kind: Any) -> Any:
        """A pointer of type `kind`* to element `index` of the array at `pointer`."""
        return self.builder.bitcast(self.builder.gep(pointer, [index]), kind.as_pointer())

    def load(self, pointer: Any, index: Any, kind: Any, align: int = 4) -> Any:
        value = self.builder.load(self.at(pointer, index, kind))
        value.align = align
        return value

    def store(self, value: Any, pointer: Any, index: Any) -> None:
        self.builder.store(value, self.at(pointer, index, value.type)).align = 4

    def weight(self, values: int, levels: int, place: Any) -> Any:
        """The float32 stored at `place`: itself, or a byte that says which of the levels."""
        if self.signature.args[values].dtype != types.uint8:
            return self.load(self.data(values), place, _FLOAT)
        code = self.load(self.data(values), place, ir.IntType(8), 1)
        return self.load(self.data(levels), self.builder.zext(code, self.word), _FLOAT)

    def constant(self, value: int) -> Any:
        return ir.Constant(self.word, value)

    def plus(self, left: Any, right: int) -> Any:
        return self.builder.add(left, self.constant(right))

    def times(self, left: Any, right: int) -> Any:
        return self.builder.mul(left, self.constant(right))

    def splat(self, value: Any, width: int) -> Any:
        kind = ir.VectorType(value.type, width)
        single = self.builder.insert_element(
            ir.Constant(kind, ir.Undefined), value, ir.Constant(_INT, 0)
        )
        mask = ir.Constant(ir.VectorType(_INT, width), [0] * width)
        return self.builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), mask)

    def both_halves(self, left: Any, right: Any) -> Any:
        """Eight lanes out of two vectors of four."""
        return self.builder.shuffle_vector(left, right, ir.Constant(_INT8, list(range(8))))

    def multiply_add(self, left: Any, right: Any, addend: Any) -> Any:
        if not _FUSED:
            return self.builder.fadd(self.builder.fmul(left, right), addend)
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(_FLOAT8, [_FLOAT8] * 3),
            "llvm.fma.v8f32",
        )
        return self.builder.call(function, [left, right, addend])

    def larger(self, left: Any, right: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", left, right), left, right)

    def smaller(self, left: Any, right: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", left, right), left, right)

    def any_lane(self, mask: Any) -> Any:
        bits = self.builder.bitcast(mask, ir.IntType(mask.type.count))
        return self.builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    def variable(self, kind: Any, value: Any) -> Any:
        slot = cgutils.alloca_once(self.builder, kind)
        self.builder.store(value, slot)
        return slot


def _accumulate(emit: _Emitter) -> Any:
    groups, builder = emit.groups, emit.builder
    (accumulator, ids, transforms, weights) = (emit.data(n) for n in (1, 2, 4, 7))
    first_id, first_transform, count, row = (emit.arguments[n] for n in (3, 5, 6, 8))
    weight = emit.load(weights, emit.times(row, 8), _FLOAT8)
    with cgutils.for_range(builder, count, intp=emit.word) as loop:
        document = builder.zext(
            emit.load(ids, builder.add(first_id, loop.index), _SHORT, 2), emit.word
        )
        target = emit.times(document, 8 * groups)
        source = emit.times(builder.add(first_transform, loop.index), 4 * groups)
        for group in range(groups):
            four = emit.load(transforms, emit.plus(source, 4 * group), _FLOAT4)
            eight = builder.shuffle_vector(four, four, ir.Constant(_INT8, [0, 1, 2, 3, 0, 1, 2, 3]))
            place = emit.plus(target, 8 * group)
            total = emit.load(accumulator, place, _FLOAT8)
            emit.store(emit.multiply_add(eight, weight, total), accumulator, place)
    return emit.context.get_dummy_value()


def _transform(emit: _Emitter) -> Any:
    groups, builder = emit.groups, emit.builder
    ids, denominators, scales, slopes, out = (emit.data(n) for n in (3, 6, 7, 8, 9))
    first, count, first_out = (emit.arguments[n] for n in (4, 5, 10))
    twice = [0, 1, 2, 3, 0, 1, 2, 3]
    smallest = ir.Constant(_FLOAT8, [SMALLEST] * 8)

    def eight(pointer: Any, group: int) -> Any:
        four = emit.load(pointer, emit.constant(4 * group), _FLOAT4)
        return builder.shuffle_vector(four, four, ir.Constant(_INT8, twice))

    scale = [eight(scales, group) for group in range(groups)]
    slope = [eight(slopes, group) for group in range(groups)]

    def pair(left: Any, right: Any) -> None:
        # Two postings at a time fill one eight-lane division.
        weight, row = [], []
        for posting in (left, right):
            place = builder.add(first, posting)
            weight.append(emit.splat(emit.weight(1, 2, place), 4))
            document = builder.zext(emit.load(ids, place, _SHORT, 2), emit.word)
            row.append(emit.times(document, 4 * groups))
        both = emit.both_halves(*weight)
        for group in range(groups):
            below = emit.both_halves(
                *(emit.load(denominators, emit.plus(r, 4 * group), _FLOAT4) for r in row)
            )
            below = builder.fadd(builder.fmul(both, slope[group]), below)
            result = builder.fdiv(builder.fmul(both, scale[group]), below)
            result = emit.larger(result, smallest)
            for half, posting in enumerate((left, right)):
                part = builder.shuffle_vector(
                    result,
                    result,
                    ir.Constant(ir.VectorType(_INT, 4), [4 * half + lane for lane in range(4)]),
                )
                place = emit.times(builder.add(first_out, posting), 4 * groups)
                emit.store(part, out, emit.plus(place, 4 * group))

    with cgutils.for_range(builder, builder.lshr(count, emit.constant(1)), intp=emit.word) as loop:
        left = emit.times(loop.index, 2)
        pair(left, emit.plus(left, 1))
    odd = builder.icmp_unsigned("!=", builder.and_(count, emit.constant(1)), emit.constant(0))
    with builder.if_then(odd):
        last = emit.plus(count, -1)
        pair(last, last)
    return emit.context.get_dummy_value()


def _scan(emit: _Emitter) -> Any:
    groups, builder = emit.groups, emit.builder
    accumulator, thresholds, scores, positions = (emit.data(n) for n in (1, 4, 6, 7))
    first, count, row, found, offset = (emit.arguments[n] for n in (2, 3, 5, 8, 9))
    width = 8 * groups
    threshold = [
        emit.load(thresholds, emit.plus(emit.times(row, width), 8 * group), _FLOAT8)
        for group in range(groups)
    ]
    zero = ir.Constant(_FLOAT8, [0.0] * 8)
    filled = emit.variable(emit.word, found)
    steps = builder.udiv(count, emit.constant(UNROLLED_DOCUMENTS))
    with cgutils.for_range(builder, steps, intp=emit.word) as loop:
        start = builder.add(first, emit.times(loop.index, UNROLLED_DOCUMENTS))
        totals, above = [], []
        for step in range(UNROLLED_DOCUMENTS):
            place = emit.times(emit.plus(start, step), width)
            own = [
                emit.load(accumulator, emit.plus(place, 8 * group), _FLOAT8)
                for group in range(groups)
            ]
            mask = builder.fcmp_ordered(">", own[0], threshold[0])
            for group in range(1, groups):
                mask = builder.or_(mask, builder.fcmp_ordered(">", own[group], threshold[group]))
            for group in range(groups):
                emit.store(zero, accumulator, emit.plus(place, 8 * group))
            totals.append(own)
            above.append(mask)
        together = above[0]
        for mask in above[1:]:
            together = builder.or_(together, mask)
        with builder.if_then(emit.any_lane(together), likely=False):
            for step in range(UNROLLED_DOCUMENTS):
                with builder.if_then(emit.any_lane(above[step])):
                    slot = builder.load(filled)
                    target = emit.times(slot, width)
                    for group in range(groups):
                        emit.store(totals[step][group], scores, emit.plus(target, 8 * group))
                    document = builder.add(offset, emit.plus(start, step))
                    builder.store(builder.trunc(document, _INT), emit.at(positions, slot, _INT))
                    builder.store(emit.plus(slot, 1), filled)
    return builder.load(filled)


def _maxima(emit: _Emitter) -> Any:
    groups, builder = emit.groups, emit.builder
    scores, out = emit.data(1), emit.data(4)
    stripes, size = emit.arguments[2:4]
    width = 8 * groups
    zero = ir.Constant(_FLOAT8, [0.0] * 8)
    most = [emit.variable(_FLOAT8, zero) for _ in range(groups)]
    with cgutils.for_range(builder, stripes, intp=emit.word) as stripe:
        for group in range(groups):
            builder.store(zero, most[group])
        with cgutils.for_range(builder, size, intp=emit.word) as step:
            entry = builder.add(builder.mul(stripe.index, size), step.index)
            place = emit.times(entry, width)
            for group in range(groups):
                own = emit.load(scores, emit.plus(place, 8 * group), _FLOAT8)
                builder.store(emit.larger(own, builder.load(most[group])), most[group])
        place = emit.times(stripe.index, width)
        for group in range(groups):
            emit.store(builder.load(most[group]), out, emit.plus(place, 8 * group))
    return emit.context.get_dummy_value()


def _count_at_least(emit: _Emitter) -> Any:
    groups, builder = emit.groups, emit.builder
    scores, levels, counts = (emit.data(n) for n in (1, 3, 4))
    width = 8 * groups
    level = [emit.load(levels, emit.constant(8 * group), _FLOAT8) for group in range(groups)]
    total = [emit.variable(_INT8, ir.Constant(_INT8, [0] * 8)) for _ in range(groups)]
    with cgutils.for_range(builder, emit.arguments[2], intp=emit.word) as loop:
        place = emit.times(loop.index, width)
        for group in range(groups):
            own = emit.load(scores, emit.plus(place, 8 * group), _FLOAT8)
            hit = builder.fcmp_ordered(">=", own, level[group])
            builder.store(
                builder.sub(builder.load(total[group]), builder.sext(hit, _INT8)), total[group]
            )
    for group in range(groups):
        emit.store(builder.load(total[group]), counts, emit.constant(8 * group))
    return emit.context.get_dummy_value()


def _keep_above(emit: _Emitter) -> Any:
    groups, builder = emit.groups, emit.builder
    scores, positions, thresholds = (emit.data(n) for n in (1, 2, 4))
    count, row = emit.arguments[3], emit.arguments[5]
    width = 8 * groups
    threshold = [
        emit.load(thresholds, emit.plus(emit.times(row, width), 8 * group), _FLOAT8)
        for group in range(groups)
    ]
    kept = emit.variable(emit.word, emit.constant(0))
    with cgutils.for_range(builder, count, intp=emit.word) as loop:
        place = emit.times(loop.index, width)
        own = [emit.load(scores, emit.plus(place, 8 * group), _FLOAT8) for group in range(groups)]
        mask = builder.fcmp_ordered(">", own[0], threshold[0])
        for group in range(1, groups):
            mask = builder.or_(mask, builder.fcmp_ordered(">", own[group], threshold[group]))
        with builder.if_then(emit.any_lane(mask)):
            slot = builder.load(kept)
            for group in range(groups):
                emit.store(own[group], scores, emit.plus(emit.times(slot, width), 8 * group))
            position = builder.load(emit.at(positions, loop.index, _INT))
            builder.store(position, emit.at(positions, slot, _INT))
            builder.store(emit.plus(slot, 1), kept)
    return builder.load(kept)


def _add_ratios(emit: _Emitter) -> Any:
    groups, builder = emit.groups, emit.builder
    slopes, pulls, inverses, sums = (emit.data(n) for n in (3, 4, 5, 9))
    value, peak, row, plain, scaled = (emit.arguments[n] for n in (1, 2, 6, 7, 8))
    kind = ir.VectorType(ir.DoubleType(), 4)
    four = emit.splat(value, 4)
    at_peak = builder.fcmp_ordered("==", four, emit.splat(peak, 4))
    one = ir.Constant(kind, [1.0] * 4)
    for group in range(groups):
        place = emit.plus(emit.times(row, 4 * groups), 4 * group)
        slope = emit.load(slopes, emit.constant(4 * group), kind, 8)
        below = builder.fadd(builder.fmul(four, slope), emit.load(pulls, place, kind, 8))
        ratio = builder.fmul(builder.fdiv(four, below), emit.load(inverses, place, kind, 8))
        ratio = builder.select(at_peak, one, ratio)
        for half, weight in enumerate((plain, scaled)):
            place = emit.plus(emit.times(row, 8 * groups), 8 * group + 4 * half)
            total = emit.load(sums, place, kind, 8)
            # Two roundings on purpose: a fused one would differ between machines.
            total = builder.fadd(total, builder.fmul(emit.splat(weight, 4), ratio))
            builder.store(total, emit.at(sums, place, kind)).align = 8
    return emit.context.get_dummy_value()


def _first_equal(emit: _Emitter) -> Any:
    builder = emit.builder
    start, skip, wanted = emit.arguments[1:]
    window = emit.load(emit.data(0), start, ir.VectorType(_SHORT, MATCH_WIDTH), 2)
    value = emit.splat(builder.trunc(wanted, _SHORT), MATCH_WIDTH)
    hits = builder.bitcast(builder.icmp_unsigned("==", window, value), ir.IntType(MATCH_WIDTH))
    hits = builder.shl(builder.lshr(hits, skip), skip)
    return builder.cttz(hits, ir.Constant(ir.IntType(1), 0))


def _weight_at(emit: _Emitter) -> Any:
    return emit.builder.fpext(emit.weight(0, 1, emit.arguments[2]), ir.DoubleType())


def _prefetch(emit: _Emitter) -> Any:
    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    function = cgutils.get_or_insert_function(
        emit.builder.module,
        ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag]),
        "llvm.prefetch.p0",
    )
    place = emit.builder.mul(emit.arguments[1], emit.arguments[2])
    address = emit.at(emit.data(0), place, ir.IntType(8))
    read, near, data = (ir.Constant(flag, value) for value in (0, 3, 1))
    emit.builder.call(function, [address, read, near, data])
    return emit.context.get_dummy_value()


def _generator(build: Callable[[_Emitter], Any]) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return build(_Emitter(context, builder, signature, arguments))

    return generate


def _none(*arguments: Any) -> Any:
    return types.void(*arguments)


def _index(*arguments: Any) -> Any:
    return types.intp(*arguments)


@intrinsic
def accumulate(  # type: ignore[no-untyped-def]
    typing_context, groups, accumulator, ids, first_id, transforms, first_transform, count,
    weights, row,
):  # fmt: skip
    """Add `weights[row] * transforms[first_transform + i]` to document `ids[first_id + i]`."""
    return _none(
        groups, accumulator, ids, types.intp, transforms, types.intp, types.intp, weights,
        types.intp,
    ), _generator(_accumulate)  # fmt: skip


@intrinsic
def transform(  # type: ignore[no-untyped-def]
    typing_context, groups, values, levels, ids, first, count, denominators, scales, slopes,
    out, first_out,
):  # fmt: skip
    """Fill `out` with `value * scale / (value * slope + denominators[id])`, >= SMALLEST."""
    return _none(
        groups, values, levels, ids, types.intp, types.intp, denominators, scales, slopes, out,
        types.intp,
    ), _generator(_transform)  # fmt: skip


@intrinsic
def scan(  # type: ignore[no-untyped-def]
    typing_context, groups, accumulator, first, count, thresholds, row, scores, positions,
    found, offset,
):  # fmt: skip
    """Append documents above `thresholds[row]` in any lane; zero all; return the new number."""
    return _index(
        groups, accumulator, types.intp, types.intp, thresholds, types.intp, scores, positions,
        types.intp, types.intp,
    ), _generator(_scan)  # fmt: skip


@intrinsic
def maxima(typing_context, groups, scores, stripes, size, out):  # type: ignore[no-untyped-def]
    """Write to `out`, (stripes, lanes), the largest of every `size` rows of scores, by lanes."""
    return _none(groups, scores, types.intp, types.intp, out), _generator(_maxima)


@intrinsic
def count_at_least(  # type: ignore[no-untyped-def]
    typing_context, groups, scores, count, levels, counts
):
    """Write to `counts` how many of the first `count` rows reach `levels`, lane by lane."""
    return _none(groups, scores, types.intp, levels, counts), _generator(_count_at_least)


@intrinsic
def keep_above(  # type: ignore[no-untyped-def]
    typing_context, groups, scores, positions, count, thresholds, row
):
    """Keep, in order, the rows above `thresholds[row]` in any lane; return how many."""
    return _index(groups, scores, positions, types.intp, thresholds, types.intp), _generator(
        _keep_above
    )


@intrinsic
def first_equal(typing_context, ids, start, skip, wanted):  # type: ignore[no-untyped-def]
    """The least i from `skip` on, below MATCH_WIDTH, with `ids[start + i] == wanted`; or 64."""
    return _index(ids, types.intp, types.intp, types.intp), _generator(_first_equal)


@intrinsic
def add_ratios(  # type: ignore[no-untyped-def]
    typing_context, groups, value, peak, slopes, pulls, inverses, row, plain, scaled, sums
):  # fmt: skip
    """Add `q_j T(value) / T(peak)` to `sums[row]`, float64, by lanes; the ratio is 1 at the peak.

    T is `value / (value * slope + pull)` up to a factor, `inverses` its inverse at the peak.
    """
    double = types.float64
    return _none(
        groups, double, double, slopes, pulls, inverses, types.intp, double, double, sums
    ), _generator(_add_ratios)


@intrinsic
def prefetch(typing_context, array, row, width):  # type: ignore[no-untyped-def]
    """Ask for element `row * width` of `array`, which will be needed soon."""
    return _none(array, types.intp, types.intp), _generator(_prefetch)


@intrinsic
def weight_at(typing_context, values, levels, place):  # type: ignore[no-untyped-def]
    """The stored value at `place` as float64, looked up in `levels` where it is a byte."""
    return types.float64(values, levels, types.intp), _generator(_weight_at)
