"""What is kept of a page's keys, and how high a query can score on it at most.

Quest (Tang et al., 2024, arXiv:2406.10774) keeps the element-wise extremes of the keys of a page.
No key of the page scores higher on a query than `sum_i max(q_i max_i, q_i min_i)`, which is
`relu(q) . max - relu(-q) . min`: one product of vectors of twice the head size.
"""

from __future__ import annotations

import torch


def page_extremes(keys: torch.Tensor, page_tokens: int, first: int = 0) -> torch.Tensor:
    """The largest and smallest key elements of every page.

    Args:
        keys: [..., tokens, head size].
        page_tokens: tokens of a page; the last page may have fewer.
        first: the first real token, where the first page begins.

    Returns:
        [..., pages, 2 * head size] float32, largest elements before smallest ones.
    """
    keys = keys[..., first:, :].float()
    *leading, tokens, size = keys.shape
    whole = tokens - tokens % page_tokens
    paged = keys[..., :whole, :].reshape(*leading, -1, page_tokens, size)
    parts = [torch.cat((paged.amax(-2), paged.amin(-2)), dim=-1)]
    if whole < tokens:
        rest = keys[..., None, whole:, :]
        parts.append(torch.cat((rest.amax(-2), rest.amin(-2)), dim=-1))
    return torch.cat(parts, dim=-2)


def no_extremes(*shape: int, device: torch.device) -> torch.Tensor:
    """Extremes of pages without a key, [*shape] float32 with twice the head size last."""
    extremes = torch.full(shape, -torch.inf, device=device)
    extremes[..., shape[-1] // 2 :] = torch.inf
    return extremes


def with_key(extremes: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Extremes of pages that grow by a key: [..., 2 * size] and [..., size] to [..., 2 * size]."""
    largest, smallest = extremes.chunk(2, dim=-1)
    key = key.float()
    return torch.cat((torch.maximum(largest, key), torch.minimum(smallest, key)), dim=-1)


def page_lengths(extremes: torch.Tensor) -> torch.Tensor:
    """Norm of a page's concatenated extremes (study, section 9): [..., pages] float64."""
    lengths: torch.Tensor = torch.linalg.vector_norm(extremes, dim=-1, dtype=torch.float64)
    return lengths


def signed_parts(queries: torch.Tensor) -> torch.Tensor:
    """What stands against the extremes: positive and negative part, [..., 2 * size] float32."""
    queries = queries.float()
    return torch.cat((queries.clamp(min=0), queries.clamp(max=0)), dim=-1)


def shared_bounds(queries: torch.Tensor, extremes: torch.Tensor, scaling: float) -> torch.Tensor:
    """Quest's bound of pages that all rows share.

    Args:
        queries: [rows, query heads, size].
        extremes: [key-value heads, pages, 2 * size]; a group of query heads shares one of them.
        scaling: the attention's factor.

    Returns:
        [rows, query heads, pages] float32.
    """
    return shared_products(signed_parts(queries) * scaling, extremes)


def own_bounds(queries: torch.Tensor, extremes: torch.Tensor, scaling: float) -> torch.Tensor:
    """The same of pages of each row: extremes are [rows, key-value heads, pages, 2 * size]."""
    return own_products(signed_parts(queries) * scaling, extremes)


def non_negative(bounds: torch.Tensor) -> torch.Tensor:
    """`softplus(bound)` in float64: rising in the bound, positive, so a feature's value."""
    # Past 709 e^x overflows, and softplus(x) has long been x to the last bit.
    return torch.nn.functional.softplus(bounds.double(), threshold=700)


def shared_products(queries: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """[rows, query heads, size] times [key-value heads, n, size] to [rows, query heads, n]."""
    rows, heads, size = queries.shape
    sharing, number, _ = vectors.shape
    grouped = queries.reshape(rows, sharing, heads // sharing, size).transpose(0, 1)
    folded = grouped.reshape(sharing, rows * (heads // sharing), size)
    products = torch.bmm(folded, vectors.transpose(1, 2))
    shaped = products.view(sharing, rows, heads // sharing, number)
    return shaped.transpose(0, 1).reshape(rows, heads, number)


def own_products(queries: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """The same where each row has vectors of its own: [rows, key-value heads, n, size]."""
    rows, heads, size = queries.shape
    sharing, number = vectors.shape[1:3]
    grouped = queries.reshape(rows, sharing, heads // sharing, size)
    return torch.matmul(grouped, vectors.transpose(2, 3)).reshape(rows, heads, number)
