"""The action head: vision-language features, state and noisy actions to the velocity of the actions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from groot_ros.checkpoint.config import ModelConfig
from groot_ros.errors import ModelError
from groot_ros.model.backbone import VisionLanguageFeatures
from groot_ros.model.category_specific import ActionEncoder, CategorySpecificMLP
from groot_ros.model.dit import DiT
from groot_ros.model.vl_self_attention import VLSelfAttention


@dataclass(frozen=True)
class Conditions:
    """What stays the same over the denoising steps of one chunk.

    Attributes:
        context: Vision-language features after norm and self-attention, ``(B, L, backbone_embedding_dim)``.
        attention_mask: Tokens of the context that are not padding, bool ``(B, L)``.
        image_mask: Tokens of the context that stand for image patches, bool ``(B, L)``.
        state_features: The encoded state, ``(B, 1, input_embedding_dim)``.
        embodiment_id: int64 ``(B,)``.

    """

    context: Tensor
    attention_mask: Tensor
    image_mask: Tensor
    state_features: Tensor
    embodiment_id: Tensor


@dataclass(frozen=True)
class FlowMatchingLoss:
    """The training loss.

    Attributes:
        loss: Mean over the elements of the mask, a scalar.
        action_loss: Masked squared errors, ``(B, H, max_action_dim)``.

    """

    loss: Tensor
    action_loss: Tensor


class ActionHead(nn.Module):
    """Predicts the velocity that carries noise to actions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        embodiments, width = config.max_num_embodiments, config.input_embedding_dim
        self.model = DiT(
            config.diffusion_model_cfg,
            context_dim=config.backbone_embedding_dim,
            attend_text_every_n_blocks=config.attend_text_every_n_blocks if config.use_alternate_vl_dit else None,
        )
        state_dim = config.max_state_dim * config.state_history_length
        self.state_encoder = CategorySpecificMLP(embodiments, state_dim, config.hidden_size, width)
        self.action_encoder = ActionEncoder(embodiments, config.max_action_dim, width)
        self.action_decoder = CategorySpecificMLP(
            embodiments, config.hidden_size, config.hidden_size, config.max_action_dim
        )
        self.vlln = nn.LayerNorm(config.backbone_embedding_dim) if config.use_vlln else nn.Identity()
        vl_config = config.vl_self_attention_cfg
        self.vl_self_attention = nn.Identity() if vl_config is None else VLSelfAttention(vl_config)
        self.position_embedding = nn.Embedding(config.max_seq_len, width) if config.add_pos_embed else None

    def conditions(self, features: VisionLanguageFeatures, state: Tensor, embodiment_id: Tensor) -> Conditions:
        """Prepare what every denoising step reads.

        Args:
            features: Output of the backbone.
            state: Normalised and zero padded, ``(B, state_history_length, max_state_dim)``.
            embodiment_id: int64 ``(B,)``.

        Raises:
            ModelError: The state has another shape.

        """
        expected = (
            features.hidden_states.shape[0],
            self.config.state_history_length,
            self.config.max_state_dim,
        )
        if state.shape != expected:
            msg = f"state has shape {tuple(state.shape)}; this network needs {expected} (batch, history, dimensions)."
            raise ModelError(msg)
        context = self.vl_self_attention(self.vlln(features.hidden_states))
        state_features = self.state_encoder(state.to(context.dtype).flatten(1)[:, None], embodiment_id)
        if self.training and self.config.state_dropout_prob > 0:
            kept = torch.rand(state.shape[0], device=state.device) >= self.config.state_dropout_prob
            state_features = state_features * kept[:, None, None]
        return Conditions(
            context=context,
            attention_mask=features.attention_mask,
            image_mask=features.image_mask,
            state_features=state_features,
            embodiment_id=embodiment_id,
        )

    def velocity(self, conditions: Conditions, actions: Tensor, bucket: Tensor) -> Tensor:
        """The velocity of noisy actions.

        Args:
            conditions: From ``conditions``.
            actions: Noisy normalised actions, ``(B, H, max_action_dim)``.
            bucket: Time bucket of each sample, int64 ``(B,)``.

        Returns:
            ``(B, H, max_action_dim)``.

        """
        tokens = self.action_encoder(actions, bucket, conditions.embodiment_id)
        if self.position_embedding is not None:
            tokens = tokens + self.position_embedding.weight[: tokens.shape[1]]
        output = self.model(
            torch.cat([conditions.state_features, tokens], dim=1),
            bucket,
            context=conditions.context,
            attention_mask=conditions.attention_mask,
            image_mask=conditions.image_mask,
        )
        decoded: Tensor = self.action_decoder(output, conditions.embodiment_id)
        return decoded[:, -actions.shape[1] :]

    def loss(
        self, conditions: Conditions, *, action: Tensor, action_mask: Tensor, noise: Tensor, time: Tensor
    ) -> FlowMatchingLoss:
        """The flow-matching loss for given noise and time.

        Args:
            conditions: From ``conditions``.
            action: Normalised target actions, ``(B, H, max_action_dim)``.
            action_mask: 1 for rows and dimensions that count, same shape.
            noise: Start of the flow, same shape.
            time: Place on the flow from 0 (noise) to 1 (actions), ``(B,)``.

        """
        place = time[:, None, None]
        noisy = (1 - place) * noise + place * action
        bucket = (time * self.config.num_timestep_buckets).long()
        error = self.velocity(conditions, noisy, bucket) - (action - noise)
        action_loss = error.square() * action_mask
        return FlowMatchingLoss(loss=action_loss.sum() / (action_mask.sum() + 1e-6), action_loss=action_loss)
