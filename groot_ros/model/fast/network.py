"""The prepared network: encode and sample as the plain network does, for one embodiment and a fixed number of steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from groot_ros.errors import ModelError
from groot_ros.model.backbone import VisionLanguageFeatures, require_patches
from groot_ros.model.fast.action_head import FastActionHead, FastConditions
from groot_ros.model.fast.language import FastLanguage
from groot_ros.model.fast.layers import Form, can_pack
from groot_ros.model.fast.prompt import PreparedPrompt, PromptCache
from groot_ros.model.fast.vision import FastVision
from groot_ros.model.model import GrootN17
from groot_ros.model.sampler import Chunking, begin


@dataclass(frozen=True)
class PreparedFeatures(VisionLanguageFeatures):
    """The backbone's features, and the prompt that they belong to.

    Attributes:
        prompt: Where the text and image tokens are.

    """

    prompt: PreparedPrompt


@dataclass(frozen=True)
class _Parts:
    prompts: PromptCache
    vision: FastVision
    language: FastLanguage
    head: FastActionHead


class FastNetwork:
    """A network prepared for one robot. The results are those of the plain network up to the rounding of sums.

    The weights move out of the plain network as they are prepared, so that there are never two of them; it cannot
    compute afterwards. They are prepared when first needed: until then they may lie in the mapped files of a
    checkpoint, afterwards every one has memory of its own.

    Args:
        network: A loaded network in evaluation mode.
        embodiment_id: Which embodiment's projectors to keep.
        steps: Number of denoising steps; the checkpoint's when None.
        residual: Number type of norms and residual sums; on a CPU float32 even beside bfloat16 weights, which costs
            nothing there and halves the rounding error, on a GPU the type of the weights.

    Raises:
        ModelError: There is no such embodiment, or no steps.

    """

    def __init__(
        self,
        network: GrootN17,
        embodiment_id: int,
        *,
        steps: int | None = None,
        residual: torch.dtype | None = None,
    ) -> None:
        self.config, self.dtype, self.device = network.config, network.dtype, network.device
        self.steps = self.config.num_inference_timesteps if steps is None else steps
        if self.steps < 1:
            msg = f"The number of denoising steps is {self.steps}; it must be 1 or more."
            raise ModelError(msg)
        projectors = network.action_head.state_encoder.layer1.W.shape[0]
        if not 0 <= embodiment_id < projectors:
            msg = f"embodiment_id is {embodiment_id}; this network has projectors 0 to {projectors - 1}."
            raise ModelError(msg)
        activation = network.backbone.config.vision.hidden_act
        if activation != "gelu_pytorch_tanh":
            msg = (
                f"The backbone's config.json has vision_config.hidden_act {activation!r}; GR00T N1.7 has the tanh form."
            )
            raise ModelError(msg)
        on_cpu = self.device.type == "cpu"
        if residual is None:
            residual = torch.promote_types(self.dtype, torch.float32) if on_cpu else self.dtype
        self.residual = residual
        self._form = Form(residual, packed=on_cpu and can_pack(self.dtype))
        self._plain, self._embodiment_id = network, embodiment_id

    @cached_property
    def _parts(self) -> _Parts:
        plain, form = self._plain, self._form
        with torch.inference_mode(mode=False), torch.no_grad():
            parts = _Parts(
                prompts=PromptCache(plain.backbone, form),
                vision=FastVision(plain.backbone.visual, form),
                language=FastLanguage(plain.backbone.language_model, form),
                head=FastActionHead(plain.action_head, self._embodiment_id, self.steps, form),
            )
        del self._plain
        return parts

    @property
    def prompts(self) -> PromptCache:
        """What depends on the instruction and the images' sizes alone."""
        return self._parts.prompts

    @torch.no_grad()
    def encode(
        self, *, input_ids: Tensor, attention_mask: Tensor, pixel_values: Tensor, image_grid_thw: Tensor
    ) -> PreparedFeatures:
        """Run the backbone.

        Args:
            input_ids: int64 ``(B, L)``, left padded; on the CPU, where the prompt is recognised.
            attention_mask: 1 for tokens, 0 for padding, ``(B, L)``; on the CPU.
            pixel_values: Patches of all images in the order of the prompt, ``(patches, 1536)``.
            image_grid_thw: Time, height and width of every image in patches, int64 ``(images, 3)``; on the CPU.

        Raises:
            ModelError: Patches, grids and image tokens do not belong together.

        """
        return self.encode_prepared(self.prompts(input_ids, attention_mask, image_grid_thw), pixel_values)

    def encode_prepared(self, prompt: PreparedPrompt, pixel_values: Tensor) -> PreparedFeatures:
        """Run the backbone for a prompt of :attr:`prompts`: nothing here waits for a device."""
        require_patches(pixel_values, prompt.patches)
        hidden = self._parts.language(*self._parts.vision(pixel_values, prompt), prompt)
        return PreparedFeatures(hidden, prompt.valid, prompt.image_mask, prompt)

    @torch.no_grad()
    def sample(
        self, features: PreparedFeatures, *, state: Tensor, noise: Tensor, rtc: Chunking | None = None
    ) -> Tensor:
        """Denoise one chunk of actions.

        Args:
            features: From ``encode``.
            state: Normalised and zero padded, ``(B, state_history_length, max_state_dim)``.
            noise: Standard normal, ``(B, action_horizon, max_action_dim)``, padding included.
            rtc: Real-time chunking with one previous chunk, or with one for each sample.

        Returns:
            Normalised actions, ``(B, action_horizon, max_action_dim)``.

        Raises:
            ModelError: A shape or the previous chunk does not fit.

        """
        batch = features.hidden_states.shape[0]
        for name, tensor, shape in (
            ("noise", noise, (batch, self.config.action_horizon, self.config.max_action_dim)),
            ("state", state, (batch, self.config.state_history_length, self.config.max_state_dim)),
        ):
            if tensor.shape != shape:
                msg = f"{name} has shape {tuple(tensor.shape)}; this network needs {shape} (batch, rows, dimensions)."
                raise ModelError(msg)
        start, strength = begin(noise.to(self.residual), rtc)
        return self.denoise(self.conditions(features, state), start, strength)

    def conditions(self, features: PreparedFeatures, state: Tensor) -> FastConditions:
        """What every denoising step reads: nothing here waits for a device."""
        return self._parts.head.conditions(features.hidden_states, state, features.prompt)

    def denoise(self, conditions: FastConditions, start: Tensor, strength: Tensor | None) -> Tensor:
        """Follow the velocity from a start ``(B, H, D)``, each row by its strength ``(H, 1)`` or ``(B, H, 1)``."""
        actions = start
        for step in range(self.steps):
            change = self._parts.head.velocity(conditions, actions, step) / self.steps
            actions = actions + (change if strength is None else change * strength)
        return actions
