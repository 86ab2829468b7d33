"""The diffusion transformer: state and action tokens that look at each other and at the vision-language features."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the field's own name

from groot_ros.checkpoint.config import DiTConfig
from groot_ros.model.attention import Attention, FeedForward
from groot_ros.model.embeddings import transformer_time_embedding

_TIME_CHANNELS = 256


class TimestepEmbedding(nn.Module):
    """Two linear layers over the sinusoidal embedding of the time bucket."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(_TIME_CHANNELS, dim)
        self.linear_2 = nn.Linear(dim, dim)

    def forward(self, embedding: Tensor) -> Tensor:
        """``(B, 256)`` to ``(B, dim)``."""
        output: Tensor = self.linear_2(F.silu(self.linear_1(embedding)))
        return output


class TimestepEncoder(nn.Module):
    """Time bucket to the vector that modulates every block."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.timestep_embedder = TimestepEmbedding(dim)

    def forward(self, bucket: Tensor) -> Tensor:
        """int64 ``(B,)`` to ``(B, dim)``."""
        embedding = transformer_time_embedding(bucket, _TIME_CHANNELS)
        output: Tensor = self.timestep_embedder(embedding.to(self.timestep_embedder.linear_1.weight.dtype))
        return output


class AdaLayerNorm(nn.Module):
    """A layer norm whose scale and shift come from the denoising time."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, 2 * dim)
        self.norm = nn.LayerNorm(dim, eps=1e-5, elementwise_affine=False)

    def forward(self, hidden: Tensor, time: Tensor) -> Tensor:
        """``(B, T, dim)`` with ``(B, dim)`` to ``(B, T, dim)``."""
        scale, shift = self.linear(F.silu(time))[:, None].chunk(2, dim=-1)
        output: Tensor = self.norm(hidden) * (1 + scale) + shift
        return output


class DiTBlock(nn.Module):
    """A transformer block: self-attention where ``context_dim`` is None, else cross-attention."""

    def __init__(self, config: DiTConfig, context_dim: int | None) -> None:
        super().__init__()
        dim = config.inner_dim
        self.norm1 = AdaLayerNorm(dim)
        self.attn1 = Attention(
            dim,
            heads=config.num_attention_heads,
            head_dim=config.attention_head_dim,
            dropout=config.dropout,
            context_dim=context_dim,
        )
        # The original drops attention outputs twice, in the attention layer and here.
        self.final_dropout = nn.Dropout(config.dropout if config.final_dropout else 0.0)
        self.norm3 = nn.LayerNorm(dim, eps=1e-5, elementwise_affine=False)
        self.ff = FeedForward(dim, dropout=config.dropout, final_dropout=config.final_dropout)

    def forward(
        self, hidden: Tensor, time: Tensor, context: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """``(B, T, dim)`` to ``(B, T, dim)``; the context is ``(B, L, context_dim)``, its mask bool ``(B, L)``."""
        hidden = hidden + self.final_dropout(self.attn1(self.norm1(hidden, time), context, mask))
        output: Tensor = hidden + self.ff(self.norm3(hidden))
        return output


class DiT(nn.Module):
    """Even blocks attend to the vision-language features, odd blocks to the tokens themselves.

    Args:
        config: ``diffusion_model_cfg``.
        context_dim: Width of the vision-language features.
        attend_text_every_n_blocks: Of the even blocks, every n-th sees the text tokens alone and the others the image
            tokens alone. None: all of them see every token, padding included.

    """

    def __init__(self, config: DiTConfig, *, context_dim: int, attend_text_every_n_blocks: int | None) -> None:
        super().__init__()
        dim = config.inner_dim
        self.attend_text_every_n_blocks = attend_text_every_n_blocks
        self.timestep_encoder = TimestepEncoder(dim)
        self.transformer_blocks = nn.ModuleList(
            DiTBlock(config, context_dim if index % 2 == 0 else None) for index in range(config.num_layers)
        )
        self.norm_out = nn.LayerNorm(dim, eps=1e-6, elementwise_affine=False)
        self.proj_out_1 = nn.Linear(dim, 2 * dim)
        self.proj_out_2 = nn.Linear(dim, config.output_dim)

    def forward(
        self, hidden: Tensor, bucket: Tensor, *, context: Tensor, attention_mask: Tensor, image_mask: Tensor
    ) -> Tensor:
        """Run the transformer.

        Args:
            hidden: State and action tokens, ``(B, T, inner_dim)``.
            bucket: Time bucket of each sample, int64 ``(B,)``.
            context: Vision-language features, ``(B, L, context_dim)``.
            attention_mask: Tokens of the context that are not padding, bool ``(B, L)``.
            image_mask: Tokens of the context that stand for image patches, bool ``(B, L)``.

        Returns:
            ``(B, T, output_dim)``.

        """
        time = self.timestep_encoder(bucket)
        images, text = image_mask & attention_mask, ~image_mask & attention_mask
        for index, block in enumerate(self.transformer_blocks):
            if index % 2 == 1:
                hidden = block(hidden, time)
            elif self.attend_text_every_n_blocks is None:
                hidden = block(hidden, time, context)
            elif index % (2 * self.attend_text_every_n_blocks) == 0:
                hidden = block(hidden, time, context, text)
            else:
                hidden = block(hidden, time, context, images)
        # Shift first here, scale first inside the blocks.
        shift, scale = self.proj_out_1(F.silu(time))[:, None].chunk(2, dim=-1)
        output: Tensor = self.proj_out_2(self.norm_out(hidden) * (1 + scale) + shift)
        return output
