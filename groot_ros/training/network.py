"""The network as it is trained: what is frozen, what is adapted, and its loss on a prepared batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from groot_ros.model.action_head import Conditions
from groot_ros.model.model import GrootN17
from groot_ros.observation import ImageInputFormat
from groot_ros.policy import GrootPolicy


class TrainedNetwork(nn.Module):
    """The network with the forward pass of training.

    Modules without a trainable parameter stay in evaluation mode, so that their dropout is off, as in the original.

    Args:
        network: The network; its parameters say by ``requires_grad`` what is trained.

    """

    image_input_format: ClassVar[ImageInputFormat] = GrootPolicy.image_input_format
    # What accelerate shards as one piece (FSDP): blocks of the vision tower, the language model and the action head.
    _no_split_modules: ClassVar[list[str]] = [
        "Qwen3VLVisionBlock",
        "Qwen3VLTextDecoderLayer",
        "SelfAttentionBlock",
        "DiTBlock",
    ]

    def __init__(self, network: GrootN17) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        *,
        input_ids: Tensor,
        attention_mask: Tensor,
        pixel_values: Tensor,
        image_grid_thw: Tensor,
        state: Tensor,
        embodiment_id: Tensor,
        action: Tensor,
        action_mask: Tensor,
        noise: Tensor,
        time: Tensor,
    ) -> dict[str, Tensor]:
        """The loss of a batch, over all of its noise draws.

        Args:
            input_ids: int64 ``(B, L)``.
            attention_mask: int64 ``(B, L)``.
            pixel_values: ``(patches, values)``.
            image_grid_thw: int64 ``(images, 3)``.
            state: ``(B, T, max_state_dim)``.
            embodiment_id: int64 ``(B,)``.
            action: ``(B, H, D)``, normalised.
            action_mask: ``(B, H, D)``.
            noise: ``(B, K, H, D)``.
            time: ``(B, K)``.

        Returns:
            ``loss``, a scalar.

        """
        features = self.network.encode(
            input_ids=input_ids,
            attention_mask=attention_mask,
            pixel_values=pixel_values.to(self.network.dtype),
            image_grid_thw=image_grid_thw,
        )
        head = self.network.action_head
        draws = noise.shape[1]
        conditions = _repeated(head.conditions(features, state, embodiment_id), draws)
        loss = head.loss(
            conditions,
            action=action.repeat_interleave(draws, dim=0),
            action_mask=action_mask.repeat_interleave(draws, dim=0),
            noise=noise.flatten(0, 1),
            time=time.flatten(),
        )
        return {"loss": loss.loss}

    def train(self, mode: bool = True) -> TrainedNetwork:
        """Switch to training or evaluation; what is frozen stays in evaluation."""
        super().train(mode)
        if mode:
            for module in self.network.modules():
                parameters = list(module.parameters())
                if parameters and not any(parameter.requires_grad for parameter in parameters):
                    module.eval()
            # The head drops state features itself: it has no module of its own for that.
            self.network.action_head.training = True
        return self

    def recompute_activations(self) -> None:
        """Keep only the inputs of each block, and compute the rest again on the way back: less memory, more time."""
        for block in self._blocks():
            block.forward = _Recomputed(block.forward)

    def _blocks(self) -> Iterator[nn.Module]:
        for module in self.network.modules():
            if isinstance(module, nn.ModuleList):
                yield from (block for block in module if any(p.requires_grad for p in block.parameters()))


class _Recomputed:
    """A forward pass whose activations are not kept."""

    def __init__(self, forward: Any) -> None:  # noqa: ANN401 - any module's
        self._forward = forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return checkpoint(self._forward, *args, use_reentrant=False, **kwargs)


def _repeated(conditions: Conditions, times: int) -> Conditions:
    if times == 1:
        return conditions
    return Conditions(
        **{name: getattr(conditions, name).repeat_interleave(times, dim=0) for name in conditions.__dataclass_fields__}
    )
