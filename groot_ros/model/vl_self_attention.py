"""Self-attention over the vision-language features, before the diffusion transformer reads them."""

from __future__ import annotations

from torch import Tensor, nn

from groot_ros.checkpoint.config import VLSelfAttentionConfig
from groot_ros.model.attention import Attention, FeedForward


class SelfAttentionBlock(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, config: VLSelfAttentionConfig) -> None:
        super().__init__()
        dim = config.num_attention_heads * config.attention_head_dim
        self.norm1 = nn.LayerNorm(dim)
        self.attn1 = Attention(
            dim, heads=config.num_attention_heads, head_dim=config.attention_head_dim, dropout=config.dropout
        )
        # The original drops attention outputs twice, in the attention layer and here.
        self.final_dropout = nn.Dropout(config.dropout if config.final_dropout else 0.0)
        self.norm3 = nn.LayerNorm(dim)
        self.ff = FeedForward(dim, dropout=config.dropout, final_dropout=config.final_dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """``(B, L, dim)`` to ``(B, L, dim)``."""
        hidden = hidden + self.final_dropout(self.attn1(self.norm1(hidden)))
        output: Tensor = hidden + self.ff(self.norm3(hidden))
        return output


class VLSelfAttention(nn.Module):
    """Blocks over all tokens, padding included: there is no mask, and the weights were trained that way."""

    def __init__(self, config: VLSelfAttentionConfig) -> None:
        super().__init__()
        self.transformer_blocks = nn.ModuleList(SelfAttentionBlock(config) for _ in range(config.num_layers))

    def forward(self, hidden: Tensor) -> Tensor:
        """``(B, L, dim)`` to ``(B, L, dim)``."""
        for block in self.transformer_blocks:
            hidden = block(hidden)
        return hidden
