"""Attention and feed-forward layers that the two transformers of the action head share."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the field's own name


class Attention(nn.Module):
    """Multi-head attention, over itself or over a context of another width."""

    def __init__(
        self, query_dim: int, *, heads: int, head_dim: int, dropout: float, context_dim: int | None = None
    ) -> None:
        super().__init__()
        self.heads = heads
        inner_dim = heads * head_dim
        key_dim = query_dim if context_dim is None else context_dim
        self.to_q = nn.Linear(query_dim, inner_dim)
        self.to_k = nn.Linear(key_dim, inner_dim)
        self.to_v = nn.Linear(key_dim, inner_dim)
        self.to_out = nn.ModuleList([nn.Linear(inner_dim, query_dim), nn.Dropout(dropout)])

    def forward(self, hidden: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Attend.

        Args:
            hidden: Queries, ``(B, T, query_dim)``.
            context: Keys and values, ``(B, S, context_dim)``; the queries themselves when None.
            mask: Keys that may be seen, bool ``(B, S)``; all when None.

        Returns:
            ``(B, T, query_dim)``.

        """
        context = hidden if context is None else context
        query, key, value = (
            tensor.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for tensor in (self.to_q(hidden), self.to_k(context), self.to_v(context))
        )
        seen = None if mask is None else mask[:, None, None, :]
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        projection, dropout = self.to_out
        output: Tensor = dropout(projection(attended.transpose(1, 2).flatten(2)))
        return output


class GeluProjection(nn.Module):
    """A linear layer followed by the tanh form of GELU."""

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.proj = nn.Linear(input_dim, output_dim)

    def forward(self, x: Tensor) -> Tensor:
        """``(..., input_dim)`` to ``(..., output_dim)``."""
        return F.gelu(self.proj(x), approximate="tanh")


class FeedForward(nn.Module):
    """Expansion by four, GELU, and back."""

    def __init__(self, dim: int, *, dropout: float, final_dropout: bool) -> None:
        super().__init__()
        layers = [GeluProjection(dim, 4 * dim), nn.Dropout(dropout), nn.Linear(4 * dim, dim)]
        if final_dropout:
            layers.append(nn.Dropout(dropout))
        self.net = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """``(..., dim)`` to ``(..., dim)``."""
        output: Tensor = self.net(x)
        return output
