"""What the linear bases share: coordinates split into their positive and negative parts."""

from __future__ import annotations

import torch

from whencount.bases.base import Codes


def split_rectified(coordinates: torch.Tensor) -> Codes:
    """Codes `[max(x, 0), max(-x, 0)]` of coordinates, shape (n, m): 2 m features."""
    values = torch.cat([coordinates.clamp(min=0), (-coordinates).clamp(min=0)], dim=1)
    return Codes(values, None, values.shape[1])
