"""GR00T N1.7: the backbone and the action head, with the checkpoint's parameter names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from groot_ros.checkpoint.config import ModelConfig
from groot_ros.errors import ModelError
from groot_ros.model.action_head import ActionHead, FlowMatchingLoss
from groot_ros.model.backbone import Backbone, VisionLanguageFeatures
from groot_ros.model.sampler import Chunking, integrate


class GrootN17(nn.Module):
    """The whole network.

    Args:
        config: The checkpoint's ``config.json``.
        backbone_config: The backbone's parsed ``config.json``.

    Raises:
        ModelError: The two do not fit each other.

    """

    def __init__(self, config: ModelConfig, backbone_config: Mapping[str, Any]) -> None:
        super().__init__()
        self.config = config
        self.backbone = Backbone(backbone_config, config.select_layer)
        backbone_width = self.backbone.config.text.hidden_size
        if backbone_width != config.backbone_embedding_dim:
            msg = (
                f"config.json says backbone_embedding_dim {config.backbone_embedding_dim}, but the backbone's "
                f"config.json says hidden_size {backbone_width}; the two files belong to different networks."
            )
            raise ModelError(msg)
        self.action_head = ActionHead(config)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return self.action_head.model.proj_out_2.weight.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.action_head.model.proj_out_2.weight.device

    def encode(
        self, *, input_ids: Tensor, attention_mask: Tensor, pixel_values: Tensor, image_grid_thw: Tensor
    ) -> VisionLanguageFeatures:
        """Run the backbone.

        Args:
            input_ids: int64 ``(B, L)``, left padded.
            attention_mask: 1 for tokens, 0 for padding, ``(B, L)``.
            pixel_values: Patches of all images in the order of the prompt, ``(patches, 1536)``.
            image_grid_thw: Time, height and width of every image in patches, int64 ``(images, 3)``.

        Raises:
            ModelError: Patches, grids and image tokens do not belong together.

        """
        features: VisionLanguageFeatures = self.backbone(
            input_ids=input_ids,
            attention_mask=attention_mask,
            pixel_values=pixel_values,
            image_grid_thw=image_grid_thw,
        )
        return features

    @torch.no_grad()
    def sample(
        self,
        features: VisionLanguageFeatures,
        *,
        state: Tensor,
        embodiment_id: Tensor,
        noise: Tensor,
        steps: int | None = None,
        rtc: Chunking | None = None,
    ) -> Tensor:
        """Denoise one chunk of actions.

        Args:
            features: From ``encode``.
            state: Normalised and zero padded, ``(B, state_history_length, max_state_dim)``.
            embodiment_id: int64 ``(B,)``.
            noise: Standard normal, ``(B, action_horizon, max_action_dim)``, padding included.
            steps: Number of Euler steps; the checkpoint's ``num_inference_timesteps`` when None.
            rtc: Real-time chunking with one previous chunk, or with one for each sample.

        Returns:
            Normalised actions, ``(B, action_horizon, max_action_dim)``.

        Raises:
            ModelError: A shape, the number of steps or the previous chunk does not fit.

        """
        expected = (features.hidden_states.shape[0], self.config.action_horizon, self.config.max_action_dim)
        if noise.shape != expected:
            msg = f"noise has shape {tuple(noise.shape)}; this network needs {expected} (batch, rows, dimensions)."
            raise ModelError(msg)
        conditions = self.action_head.conditions(features, state, embodiment_id)
        return integrate(
            lambda actions, bucket: self.action_head.velocity(conditions, actions, bucket),
            noise.to(features.hidden_states.dtype),
            steps=self.config.num_inference_timesteps if steps is None else steps,
            num_timestep_buckets=self.config.num_timestep_buckets,
            rtc=rtc,
        )

    def loss(
        self,
        features: VisionLanguageFeatures,
        *,
        state: Tensor,
        embodiment_id: Tensor,
        action: Tensor,
        action_mask: Tensor,
        noise: Tensor,
        time: Tensor,
    ) -> FlowMatchingLoss:
        """The flow-matching loss for given noise and time.

        In training mode the state features of a sample are dropped with the checkpoint's ``state_dropout_prob``.

        Args:
            features: From ``encode``.
            state: Normalised and zero padded, ``(B, state_history_length, max_state_dim)``.
            embodiment_id: int64 ``(B,)``.
            action: Normalised target actions, ``(B, action_horizon, max_action_dim)``.
            action_mask: 1 for rows and dimensions that count, same shape.
            noise: Standard normal, same shape.
            time: Place on the flow from 0 (noise) to 1 (actions), ``(B,)``.

        """
        conditions = self.action_head.conditions(features, state, embodiment_id)
        return self.action_head.loss(conditions, action=action, action_mask=action_mask, noise=noise, time=time)
