"""The k largest scores of each row, on any device."""

from __future__ import annotations

import numpy as np
import torch

from whencount.bases.kernels import top_k_rows


def top_k(
    scores: torch.Tensor, k: int, floor: float = -np.inf
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest scores above `floor` of each row, falling.

    On a CPU equal scores go to the smaller feature; a GPU leaves their order open.

    Args:
        scores: float32, shape (n, features), finite.
        k: how many, at most the number of features.
        floor: only scores above it count; a place without one is (value 0, feature 0).

    Returns:
        values float32 and features int32, both of shape (n, k).
    """
    if scores.device.type == "cpu":
        values = np.empty((len(scores), k), dtype=np.float32)
        features = np.empty((len(scores), k), dtype=np.int32)
        top_k_rows(scores.numpy(), k, np.float32(floor), values, features)
        return torch.from_numpy(values), torch.from_numpy(features)
    best, chosen = torch.topk(scores, k, dim=1)
    above = best > floor
    return best * above, (chosen * above).to(torch.int32)
