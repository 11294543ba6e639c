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
    norms: Floats,
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
        norms: out, shape (n, 2): norms of `errors` and of `inputs`.

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
        length = np.float32(0.0)
        for at in range(dimensions):
            length += point[at] * point[at]
            squares += error[at] * error[at]
            error[at] *= scale
        norms[row, 0] = scale * np.sqrt(squares)
        norms[row, 1] = np.sqrt(length)
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


@njit(nogil=True, cache=True)
def gradient_bound(
    starts: NDArray[np.int64],
    pairs: NDArray[np.int32],
    codes: Floats,
    slopes: Floats,
    norms: Floats,
) -> float:
    """An upper bound of the squared norm of the gradient, by the triangle inequality per feature.

    Where it lies below the clipping norm, clipping changes nothing, and the gradient need not be
    held as a whole before the step.
    """
    k = codes.shape[1]
    weights, flat_slopes = codes.ravel(), slopes.ravel()
    total = 0.0
    for feature in range(len(starts) - 1):
        by_error, by_input, bias = 0.0, 0.0, 0.0
        for position in range(starts[feature], starts[feature + 1]):
            pair = pairs[position]
            slope = abs(flat_slopes[pair])
            by_error += weights[pair] * norms[pair // k, 0]
            by_input += slope * norms[pair // k, 1]
            bias += slope
        total += by_error * by_error + by_input * by_input + bias * bias
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _sum_pairs(
    pairs: NDArray[np.int32], k: int, rows: Floats, weights: Floats, total: Floats
) -> np.float32:
    """`total = sum of weight * row` over the pairs of a feature; returns the sum of weights."""
    width = len(total)
    for at in range(width):
        total[at] = 0.0
    mass = np.float32(0.0)
    stop = len(pairs) - len(pairs) % 4
    for position in range(0, stop, 4):
        # Four pairs at a time: a quarter of the traffic on the sum.
        p, q = pairs[position], pairs[position + 1]
        r, s = pairs[position + 2], pairs[position + 3]
        first, second, third, fourth = rows[p // k], rows[q // k], rows[r // k], rows[s // k]
        a, b, c, d = weights[p], weights[q], weights[r], weights[s]
        mass += a + b + c + d
        for at in range(width):
            total[at] += a * first[at] + b * second[at] + c * third[at] + d * fourth[at]
    for position in range(stop, len(pairs)):
        pair = pairs[position]
        first, a = rows[pair // k], weights[pair]
        mass += a
        for at in range(width):
            total[at] += a * first[at]
    return mass


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
    encoder_gradient: Floats,
    decoder_gradient: Floats,
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
        encoder_gradient: out, shape (features, dimensions).
        decoder_gradient: out, shape (features, dimensions).
        bias_gradient: out, shape (features,).

    Returns:
        The sum of squares of everything written.
    """
    k = codes.shape[1]
    weights, flat_slopes = codes.ravel(), slopes.ravel()
    squares = 0.0
    for feature in range(first, last):
        mine = pairs[starts[feature] : starts[feature + 1]]
        by_error, by_input = decoder_gradient[feature], encoder_gradient[feature]
        _sum_pairs(mine, k, errors, weights, by_error)
        bias = _sum_pairs(mine, k, inputs, flat_slopes, by_input)
        bias_gradient[feature] = bias
        total = bias * bias
        for at in range(len(by_error)):
            total += by_error[at] * by_error[at] + by_input[at] * by_input[at]
        squares += float(total)
    return squares


@njit(nogil=True, cache=True, fastmath=True)
def _adam_row(
    parameter: Floats, gradient: Floats, moment1: Floats, moment2: Floats, numbers: Floats
) -> np.float32:
    """One AdamW step of a row, in place; returns the row's squared norm."""
    clip, rate, decay, correction1, correction2 = numbers
    keep = np.float32(1.0) - rate * decay
    step = rate / correction1
    root = np.float32(1.0) / np.sqrt(correction2)
    squares = np.float32(0.0)
    for at in range(len(parameter)):
        slope = gradient[at] * clip
        moment1[at] = np.float32(0.9) * moment1[at] + np.float32(0.1) * slope
        moment2[at] = np.float32(0.999) * moment2[at] + np.float32(0.001) * slope * slope
        parameter[at] = keep * parameter[at] - step * moment1[at] / (
            np.sqrt(moment2[at]) * root + np.float32(1e-8)
        )
        squares += parameter[at] * parameter[at]
    return squares


@njit(nogil=True, cache=True, fastmath=True)
def _to_unit(row: Floats, squares: np.float32) -> None:
    if squares > 0:
        inverse = np.float32(1.0) / np.sqrt(squares)
        for at in range(len(row)):
            row[at] *= inverse


@njit(nogil=True, cache=True, fastmath=True)
def adam_rows(
    parameters: Floats,
    gradients: Floats,
    first_moments: Floats,
    second_moments: Floats,
    numbers: Floats,
    unit_rows: bool,
) -> None:
    """One AdamW step (Loshchilov & Hutter 2019; betas 0.9 and 0.999, epsilon 1e-8), in place.

    Args:
        parameters: shape (rows, width).
        gradients: likewise.
        first_moments: likewise.
        second_moments: likewise.
        numbers: what clipping leaves of the gradient (a factor), learning rate, decoupled weight
            decay, `1 - 0.9 ** step` and `1 - 0.999 ** step`.
        unit_rows: whether each row is then scaled to norm 1.
    """
    for row in range(len(parameters)):
        squares = _adam_row(
            parameters[row], gradients[row], first_moments[row], second_moments[row], numbers
        )
        if unit_rows:
            _to_unit(parameters[row], squares)


@njit(nogil=True, cache=True, fastmath=True)
def step_features(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    pairs: NDArray[np.int32],
    inputs: Floats,
    errors: Floats,
    codes: Floats,
    slopes: Floats,
    encoder: tuple[Floats, Floats, Floats],
    decoder: tuple[Floats, Floats, Floats],
    bias_gradient: Floats,
    numbers: Floats,
) -> None:
    """`accumulate_gradients` and `adam_rows` of features first..last - 1 in one go.

    The gradient of a row lives in the cache only. The bias gets its gradient, not its step.

    Args:
        first: first feature.
        last: the feature after the last one.
        starts: of `pairs_by_feature`.
        pairs: of `pairs_by_feature`.
        inputs: shape (n, dimensions).
        errors: shape (n, dimensions), as `decode_rows` gives them.
        codes: shape (n, k).
        slopes: shape (n, k).
        encoder: parameters and both moments, each of shape (features, dimensions).
        decoder: likewise; its rows end with norm 1.
        bias_gradient: out, shape (features,).
        numbers: of `adam_rows`.
    """
    k = codes.shape[1]
    weights, flat_slopes = codes.ravel(), slopes.ravel()
    gradient = np.empty(inputs.shape[1], dtype=np.float32)
    for feature in range(first, last):
        mine = pairs[starts[feature] : starts[feature + 1]]
        _sum_pairs(mine, k, errors, weights, gradient)
        row = decoder[0][feature]
        squares = _adam_row(row, gradient, decoder[1][feature], decoder[2][feature], numbers)
        _to_unit(row, squares)
        bias_gradient[feature] = _sum_pairs(mine, k, inputs, flat_slopes, gradient)
        _adam_row(encoder[0][feature], gradient, encoder[1][feature], encoder[2][feature], numbers)
