"""The kept decoder layers of the language model, without logits, cache or the final norm."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextDecoderLayer, Qwen3VLTextRMSNorm

from groot_ros.model.backbone_config import BackboneConfig
from groot_ros.model.positions import text_rotary


class LanguageLayers(nn.Module):
    """The first ``num_layers`` decoder layers of Qwen3-VL; the result is what the last of them leaves."""

    def __init__(self, config: BackboneConfig, num_layers: int) -> None:
        super().__init__()
        self.head_dim: int = config.text.head_dim
        self.rope_theta = config.rope_theta
        self.mrope_section = config.mrope_section
        self.embed_tokens = nn.Embedding(config.text.vocab_size, config.text.hidden_size)
        self.layers = nn.ModuleList(Qwen3VLTextDecoderLayer(config.text, index) for index in range(num_layers))
        # Part of the checkpoint, never applied: the action head was trained on the features before it.
        self.norm = Qwen3VLTextRMSNorm(config.text.hidden_size, eps=config.text.rms_norm_eps)

    def forward(
        self, embeddings: Tensor, *, positions: Tensor, valid: Tensor, image_mask: Tensor, deepstack: Sequence[Tensor]
    ) -> Tensor:
        """Run the layers.

        Args:
            embeddings: Tokens with the image features in their places, ``(B, L, hidden)``.
            positions: Temporal, height and width position of every token, int64 ``(3, B, L)``.
            valid: Tokens that are not padding, bool ``(B, L)``.
            image_mask: Tokens that stand for image patches, bool ``(B, L)``.
            deepstack: Features added to the image tokens after layer 0, 1, ..., ``(image tokens, hidden)`` each.

        Returns:
            Hidden states after the last layer, before the final norm, ``(B, L, hidden)``.

        """
        cosine, sine = text_rotary(
            positions, head_dim=self.head_dim, theta=self.rope_theta, sections=self.mrope_section
        )
        rotary = (cosine.to(embeddings.dtype), sine.to(embeddings.dtype))
        mask = causal_mask(valid)
        hidden = embeddings
        for index, layer in enumerate(self.layers):
            hidden = layer(hidden, attention_mask=mask, position_embeddings=rotary)
            if index < len(deepstack):
                hidden = hidden + torch.zeros_like(hidden).masked_scatter(image_mask[..., None], deepstack[index])
        return hidden


def causal_mask(valid: Tensor) -> Tensor | None:
    """Keys each query may see, bool ``(B, 1, L, L)``; None where plain causal attention says the same."""
    if bool(valid.all()):
        return None
    length = valid.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=valid.device).tril()
    return causal & valid[:, None, None, :]
