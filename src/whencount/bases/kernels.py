"""CPU kernels of the bases: the k largest of each row, and the sparse half of SAE training.

Each kernel releases the interpreter lock and works on a range of rows, so that callers share the
work between threads; no kernel's result depends on how the ranges are cut.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]


@njit(nogil=True, cache=True)
def top_k_rows(
    scores: Floats, k: int, floor: np.float32, values: Floats, features: Integers
) -> None:
    """The k largest scores above `floor` of each row, falling; equal scores: the smaller feature.

    Where fewer than k lie above the floor, the rest of the row is (0, 0). Columns fall into
    interleaved lanes; a bound that at least k lane maxima reach is found by bisection, so at least
    k scores reach it, and only lanes that reach it are looked at again.

    Args:
        scores: shape (n, features), finite.
        k: how many, at most the number of features.
        floor: scores must be greater.
        values: out, shape (n, k).
        features: out, shape (n, k).
    """
    rows, width = scores.shape
    lanes = min(width, max(256, 4 * k))
    maxima = np.empty(lanes, dtype=np.float32)
    candidates = np.empty(width, dtype=np.int32)
    half = np.float32(0.5)
    for row in range(rows):
        line = scores[row]
        for lane in range(lanes):
            maxima[lane] = line[lane]
        for base in range(lanes, width, lanes):
            part = line[base : min(base + lanes, width)]
            for lane in range(len(part)):
                maxima[lane] = part[lane] if part[lane] > maxima[lane] else maxima[lane]
        low, high = maxima[0], maxima[0]
        for lane in range(lanes):
            low = min(low, maxima[lane])
            high = max(high, maxima[lane])
        low = max(low, floor)
        reached = 0
        for lane in range(lanes):
            reached += maxima[lane] >= low
        if reached > k:
            for _ in range(9):
                middle = low + half * (high - low)
                reached = 0
                for lane in range(lanes):
                    reached += maxima[lane] >= middle
                if reached >= k:
                    low = middle
                else:
                    high = middle
        count = 0
        for lane in range(lanes):
            if maxima[lane] >= low:
                for feature in range(lane, width, lanes):
                    # Written always, kept when it counts: no branch to mispredict.
                    candidates[count] = feature
                    count += (line[feature] >= low) & (line[feature] > floor)
        found = 0
        best, chosen = values[row], features[row]
        for candidate in range(count):
            feature = candidates[candidate]
            value = line[feature]
            if found == k and (
                value < best[k - 1] or (value == best[k - 1] and feature > chosen[k - 1])
            ):
                continue
            at = min(found, k - 1)
            while at > 0 and (
                best[at - 1] < value or (best[at - 1] == value and chosen[at - 1] > feature)
            ):
                best[at] = best[at - 1]
                chosen[at] = chosen[at - 1]
                at -= 1
            best[at] = value
            chosen[at] = feature
            found = min(found + 1, k)
        for at in range(found, k):
            best[at] = 0.0
            chosen[at] = 0


@njit(nogil=True, cache=True, fastmath=True)
def decode_rows(
    inputs: Floats,
    decoder: Floats,
    features: Integers,
    codes: Floats,
    scale: np.float32,
    errors: Floats,
    slopes: Floats,
) -> float:
    """Reconstruct each input from its code; give the error and the slope of the loss.

    With `error = sum_j code_j decoder[feature_j] - input`, writes `errors = scale * error` and
    `slopes_j = errors . decoder[feature_j]` (0 where the code is 0).

    Args:
        inputs: shape (n, dimensions).
        decoder: shape (features, dimensions).
        features: shape (n, k).
        codes: shape (n, k).
        scale: derivative of the loss per unit of error.
        errors: out, shape (n, dimensions).
        slopes: out, shape (n, k).

    Returns:
        The sum of squared errors, unscaled.
    """
    rows, dimensions = inputs.shape
    k = features.shape[1]
    total = 0.0
    for row in range(rows):
        error = errors[row]
        point = inputs[row]
        for at in range(dimensions):
            error[at] = -point[at]
        for j in range(0, k - 3, 4):
            # Four rows at a time: a quarter of the traffic on `error`.
            first, second = decoder[features[row, j]], decoder[features[row, j + 1]]
            third, fourth = decoder[features[row, j + 2]], decoder[features[row, j + 3]]
            a, b, c, d = codes[row, j], codes[row, j + 1], codes[row, j + 2], codes[row, j + 3]
            for at in range(dimensions):
                error[at] += a * first[at] + b * second[at] + c * third[at] + d * fourth[at]
        for j in range(k - k % 4, k):
            first, a = decoder[features[row, j]], codes[row, j]
            for at in range(dimensions):
                error[at] += a * first[at]
        squares = np.float32(0.0)
        for at in range(dimensions):
            squares += error[at] * error[at]
            error[at] *= scale
        total += float(squares)
        for j in range(k):
            slope = np.float32(0.0)
            if codes[row, j] > 0:
                first = decoder[features[row, j]]
                for at in range(dimensions):
                    slope += error[at] * first[at]
            slopes[row, j] = slope
    return total


@njit(nogil=True, cache=True)
def pairs_by_feature(
    features: Integers, codes: Floats, feature_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Group the pairs of positive code by feature, each group in row order.

    Returns:
        starts: int64, shape (feature_count + 1,).
        pairs: int32, flat positions into `features`; feature f owns starts[f]..starts[f + 1] - 1.
    """
    flat, weights = features.ravel(), codes.ravel()
    starts = np.zeros(feature_count + 1, dtype=np.int64)
    for pair in range(len(flat)):
        if weights[pair] > 0:
            starts[flat[pair] + 1] += 1
    for feature in range(feature_count):
        starts[feature + 1] += starts[feature]
    following = starts[:-1].copy()
    pairs = np.empty(starts[feature_count], dtype=np.int32)
    for pair in range(len(flat)):
        if weights[pair] > 0:
            pairs[following[flat[pair]]] = pair
            following[flat[pair]] += 1
    return starts, pairs


@njit(nogil=True, cache=True, fastmath=True)
def accumulate_gradients(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    pairs: NDArray[np.int32],
    inputs: Floats,
    errors: Floats,
    codes: Floats,
    slopes: Floats,
    decoder_gradient: Floats,
    encoder_gradient: Floats,
    bias_gradient: Floats,
) -> float:
    """Gradients of features first..last - 1, summed over the pairs of each feature.

    `decoder_gradient[f] = sum code * error`, `encoder_gradient[f] = sum slope * input`,
    `bias_gradient[f] = sum slope`.

    Args:
        first: first feature.
        last: the feature after the last one.
        starts: of `pairs_by_feature`.
        pairs: of `pairs_by_feature`.
        inputs: shape (n, dimensions).
        errors: shape (n, dimensions), as `decode_rows` gives them.
        codes: shape (n, k).
        slopes: shape (n, k).
        decoder_gradient: out, shape (features, dimensions).
        encoder_gradient: out, shape (features, dimensions).
        bias_gradient: out, shape (features,).

    Returns:
        The sum of squares of everything written.
    """
    k = codes.shape[1]
    weights, flat_slopes = codes.ravel(), slopes.ravel()
    dimensions = inputs.shape[1]
    squares = 0.0
    for feature in range(first, last):
        by_error, by_input = decoder_gradient[feature], encoder_gradient[feature]
        for at in range(dimensions):
            by_error[at] = 0.0
            by_input[at] = 0.0
        bias = np.float32(0.0)
        position, stop = starts[feature], starts[feature + 1]
        while position + 3 < stop:
            # Four pairs at a time: a quarter of the traffic on the sums.
            p, q = pairs[position], pairs[position + 1]
            r, s = pairs[position + 2], pairs[position + 3]
            error1, error2, error3, error4 = (
                errors[p // k], errors[q // k], errors[r // k], errors[s // k]
            )  # fmt: skip
            point1, point2, point3, point4 = (
                inputs[p // k], inputs[q // k], inputs[r // k], inputs[s // k]
            )  # fmt: skip
            code1, code2, code3, code4 = weights[p], weights[q], weights[r], weights[s]
            slope1, slope2, slope3, slope4 = (
                flat_slopes[p], flat_slopes[q], flat_slopes[r], flat_slopes[s]
            )  # fmt: skip
            bias += slope1 + slope2 + slope3 + slope4
            for at in range(dimensions):
                by_error[at] += (
                    code1 * error1[at]
                    + code2 * error2[at]
                    + code3 * error3[at]
                    + code4 * error4[at]
                )
            # Its own loop: with ten arrays in one the compiler gives up proving no overlap.
            for at in range(dimensions):
                by_input[at] += (
                    slope1 * point1[at]
                    + slope2 * point2[at]
                    + slope3 * point3[at]
                    + slope4 * point4[at]
                )
            position += 4
        for rest in range(position, stop):
            pair = pairs[rest]
            error1, point1 = errors[pair // k], inputs[pair // k]
            code1, slope1 = weights[pair], flat_slopes[pair]
            bias += slope1
            for at in range(dimensions):
                by_error[at] += code1 * error1[at]
            for at in range(dimensions):
                by_input[at] += slope1 * point1[at]
        total = np.float32(0.0)
        for at in range(dimensions):
            total += by_error[at] * by_error[at] + by_input[at] * by_input[at]
        bias_gradient[feature] = bias
        squares += float(total + bias * bias)
    return squares


@njit(nogil=True, cache=True, fastmath=True)
def adam_rows(
    parameters: Floats,
    gradients: Floats,
    first_moments: Floats,
    second_moments: Floats,
    clip: np.float32,
    rate: np.float32,
    decay: np.float32,
    correction1: np.float32,
    correction2: np.float32,
    unit_rows: bool,
) -> None:
    """One AdamW step (Loshchilov & Hutter 2019; betas 0.9 and 0.999, epsilon 1e-8), in place.

    Args:
        parameters: shape (rows, width).
        gradients: likewise; multiplied by `clip` first.
        first_moments: likewise.
        second_moments: likewise.
        clip: what gradient clipping leaves of the gradient.
        rate: learning rate.
        decay: decoupled weight decay.
        correction1: `1 - 0.9 ** step`.
        correction2: `1 - 0.999 ** step`.
        unit_rows: whether each row is then scaled to norm 1.
    """
    rows, width = parameters.shape
    keep = np.float32(1.0) - rate * decay
    step = rate / correction1
    root = np.float32(1.0) / np.sqrt(correction2)
    for row in range(rows):
        parameter, gradient = parameters[row], gradients[row]
        moment1, moment2 = first_moments[row], second_moments[row]
        squares = np.float32(0.0)
        for at in range(width):
            slope = gradient[at] * clip
            moment1[at] = np.float32(0.9) * moment1[at] + np.float32(0.1) * slope
            moment2[at] = np.float32(0.999) * moment2[at] + np.float32(0.001) * slope * slope
            parameter[at] = keep * parameter[at] - step * moment1[at] / (
                np.sqrt(moment2[at]) * root + np.float32(1e-8)
            )
            squares += parameter[at] * parameter[at]
        if unit_rows and squares > 0:
            inverse = np.float32(1.0) / np.sqrt(squares)
            for at in range(width):
                parameter[at] *= inverse
