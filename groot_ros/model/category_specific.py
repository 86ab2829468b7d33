"""Layers with one set of weights per embodiment."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the field's own name

from groot_ros.model.embeddings import action_time_embedding


class CategorySpecificLinear(nn.Module):
    """A linear layer whose weights are chosen by the embodiment of each sample: ``y = x @ W[id] + b[id]``."""

    def __init__(self, num_categories: int, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.W = nn.Parameter(0.02 * torch.randn(num_categories, input_dim, output_dim))
        self.b = nn.Parameter(torch.zeros(num_categories, output_dim))

    def forward(self, x: Tensor, category: Tensor) -> Tensor:
        """``(B, T, input_dim)`` with int64 ``(B,)`` to ``(B, T, output_dim)``."""
        return torch.baddbmm(self.b[category][:, None], x, self.W[category])


class CategorySpecificMLP(nn.Module):
    """Two category-specific layers with a ReLU between them."""

    def __init__(self, num_categories: int, input_dim: int, hidden_dim: int, output_dim: int) -> None:
        super().__init__()
        self.layer1 = CategorySpecificLinear(num_categories, input_dim, hidden_dim)
        self.layer2 = CategorySpecificLinear(num_categories, hidden_dim, output_dim)

    def forward(self, x: Tensor, category: Tensor) -> Tensor:
        """``(B, T, input_dim)`` with int64 ``(B,)`` to ``(B, T, output_dim)``."""
        output: Tensor = self.layer2(F.relu(self.layer1(x, category)), category)
        return output


class ActionEncoder(nn.Module):
    """Noisy actions and the time bucket to one token per row."""

    def __init__(self, num_categories: int, action_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.W1 = CategorySpecificLinear(num_categories, action_dim, hidden_dim)
        self.W2 = CategorySpecificLinear(num_categories, 2 * hidden_dim, hidden_dim)
        self.W3 = CategorySpecificLinear(num_categories, hidden_dim, hidden_dim)
        self.hidden_dim = hidden_dim

    def forward(self, actions: Tensor, bucket: Tensor, category: Tensor) -> Tensor:
        """Encode.

        Args:
            actions: Noisy normalised actions, ``(B, H, action_dim)``.
            bucket: Time bucket of each sample, int64 ``(B,)``.
            category: Embodiment id, int64 ``(B,)``.

        Returns:
            ``(B, H, hidden_dim)``.

        """
        encoded = self.W1(actions, category)
        time = action_time_embedding(bucket, self.hidden_dim).to(encoded.dtype)
        time = time[:, None].expand(-1, encoded.shape[1], -1)
        hidden = F.silu(self.W2(torch.cat([encoded, time], dim=-1), category))
        output: Tensor = self.W3(hidden, category)
        return output
