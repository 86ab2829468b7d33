"""What the network needs of a prompt and its image sizes: computed when they change, kept while they stay."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from groot_ros.model.backbone import Backbone, image_grids
from groot_ros.model.fast.layers import Form, signed
from groot_ros.model.language import causal_mask
from groot_ros.model.positions import (
    Grid,
    interpolate_position_grid,
    patch_coordinates,
    text_rotary,
    token_positions,
    vision_rotary,
)

REMEMBERED_PROMPTS = 32
"""Every set of robots that is predicted together is a prompt of its own; each takes some megabytes."""


@dataclass(frozen=True)
class TokenChoice:
    """Some tokens of every sample.

    Attributes:
        index: Their places, int64 ``(B, S)``; where a sample has fewer, the rest repeats a place.
        mask: Which of them count, bool ``(B, 1, 1, S)``; None where all do.

    """

    index: Tensor
    mask: Tensor | None

    @classmethod
    def of(cls, chosen: Tensor) -> TokenChoice:
        """The tokens that a mask ``(B, L)`` names."""
        counts = chosen.sum(dim=1)
        most = max(1, int(counts.max()))
        order = (~chosen).int().argsort(dim=1, stable=True)[:, :most]  # the chosen ones first, in their order
        counted = torch.arange(most) < counts[:, None]
        return cls(order, None if bool(counted.all()) else counted[:, None, None, :])

    def take(self, context: Tensor) -> Tensor:
        """Their features, ``(B, L, width)`` to ``(B, S, width)``."""
        return context.gather(1, self.index[..., None].expand(-1, -1, context.shape[-1]))

    def to(self, device: torch.device) -> TokenChoice:
        """The same on a device."""
        return TokenChoice(self.index.to(device), None if self.mask is None else self.mask.to(device))


@dataclass(frozen=True, eq=False)
class PreparedPrompt:
    """A prompt on the device.

    Attributes:
        input_ids: int64 ``(B, L)``.
        valid: Tokens that are not padding, bool ``(B, L)``.
        image_mask: Tokens that stand for image patches, bool ``(B, L)``.
        image_places: Places of the image tokens in the flattened batch, int64 ``(image tokens,)``.
        embeddings: Token embeddings, ``(B, L, hidden)``; what stands at image tokens is overwritten.
        causal: Keys that each query may see, bool ``(B, 1, L, L)``; None for plain causal attention.
        text_rotary: Cosine and signed sine of the tokens, ``(B, 1, L, head_dim)``.
        image_groups: Neighbouring images of equal size: how many, and patches of each.
        patches: Patches of all images.
        patch_positions: Interpolated position embedding of every patch, ``(patches, hidden)``.
        patch_rotary: Cosine and signed sine of the patches, ``(patches, 1, 1, head_dim)``.
        text: The valid text tokens.
        images: The valid image tokens.

    """

    input_ids: Tensor
    valid: Tensor
    image_mask: Tensor
    image_places: Tensor
    embeddings: Tensor
    causal: Tensor | None
    text_rotary: tuple[Tensor, Tensor]
    image_groups: tuple[tuple[int, int], ...]
    patches: int
    patch_positions: Tensor
    patch_rotary: tuple[Tensor, Tensor]
    text: TokenChoice
    images: TokenChoice

    @cached_property
    def form(self) -> Hashable:
        """Shapes of all tensors, and the images' sizes: what computing with a prompt depends on but for values."""
        form: Hashable = _mapped(self._fields(), lambda tensor: tensor.shape)
        return form

    def copy(self) -> PreparedPrompt:
        """The same in memory of its own."""
        return PreparedPrompt(*_mapped(self._fields(), torch.clone))

    def take(self, other: PreparedPrompt) -> None:
        """Overwrite all tensors with those of another prompt of the same form."""
        tensors: list[Tensor] = []
        _mapped(other._fields(), tensors.append)
        following = iter(tensors)
        _mapped(self._fields(), lambda tensor: tensor.copy_(next(following)))

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


def _mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:  # noqa: ANN401 - whatever a prompt holds
    """The same with every tensor changed, also those inside of tuples and token choices."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_mapped(part, change) for part in value)
    if isinstance(value, TokenChoice):
        return TokenChoice(_mapped(value.index, change), _mapped(value.mask, change))
    return value


class PromptCache:
    """Prepares prompts and keeps the last few; a new instruction or image size is prepared anew.

    Args:
        backbone: The plain backbone; its embeddings of tokens and positions must still be there.
        form: How to compute; embeddings and angles have the type of its residual sums.

    """

    def __init__(self, backbone: Backbone, form: Form) -> None:
        visual, language = backbone.visual, backbone.language_model
        self._residual = form.residual
        self._image_token_id = backbone.config.image_token_id
        self._merge_size, self._grid_side = visual.merge_size, visual.grid_side
        self._vision_head_dim = visual.head_dim
        self._text_rotary = partial(
            text_rotary, head_dim=language.head_dim, theta=language.rope_theta, sections=language.mrope_section
        )
        self._token_embeddings = form.own(language.embed_tokens.weight.detach())
        self._position_embeddings = form.own(visual.pos_embed.weight.detach())
        self._kept: OrderedDict[tuple[bytes, ...], PreparedPrompt] = OrderedDict()

    def __call__(self, input_ids: Tensor, attention_mask: Tensor, image_grid_thw: Tensor) -> PreparedPrompt:
        """The prepared prompt.

        Args:
            input_ids: int64 ``(B, L)``, best on the CPU: from a device they must be fetched.
            attention_mask: 1 for tokens, 0 for padding, ``(B, L)``.
            image_grid_thw: Time, height and width of every image in patches, int64 ``(images, 3)``.

        Raises:
            ModelError: Grids and image tokens do not belong together.

        """
        ids, mask, grid = (tensor.cpu() for tensor in (input_ids, attention_mask, image_grid_thw))
        shape = repr(tuple(ids.shape)).encode()
        key = (shape, ids.numpy().tobytes(), mask.numpy().tobytes(), grid.numpy().tobytes())
        if key in self._kept:
            self._kept.move_to_end(key)
        else:
            self._kept[key] = self._prepare(ids, mask.bool(), image_grids(grid, self._merge_size))
            if len(self._kept) > REMEMBERED_PROMPTS:
                self._kept.popitem(last=False)
        return self._kept[key]

    def _prepare(self, ids: Tensor, valid: Tensor, grids: list[Grid]) -> PreparedPrompt:
        device = self._token_embeddings.device
        image_mask = ids == self._image_token_id
        positions = token_positions(image_mask, valid, grids, self._merge_size)
        cosine, sine = self._text_rotary(positions)
        coordinates = patch_coordinates(grids, self._merge_size)
        patch_cosine, patch_sine = vision_rotary(coordinates, self._vision_head_dim)
        mask = causal_mask(valid)
        sizes = [height * width for height, width in grids]
        return PreparedPrompt(
            input_ids=ids.to(device),
            valid=valid.to(device),
            image_mask=image_mask.to(device),
            image_places=image_mask.flatten().nonzero()[:, 0].to(device),
            embeddings=self._token_embeddings[ids.to(device)].to(self._residual),
            causal=None if mask is None else mask.to(device),
            text_rotary=(self._angles(cosine[:, None]), self._angles(signed(sine)[:, None])),
            image_groups=tuple((len(list(run)), size) for size, run in itertools.groupby(sizes)),
            patches=sum(sizes),
            patch_positions=self._patch_positions(grids),
            patch_rotary=(self._angles(patch_cosine[:, None, None]), self._angles(signed(patch_sine)[:, None, None])),
            text=TokenChoice.of(valid & ~image_mask).to(device),
            images=TokenChoice.of(valid & image_mask).to(device),
        )

    def _angles(self, values: Tensor) -> Tensor:
        return values.to(self._token_embeddings.device, self._residual)

    def _patch_positions(self, grids: list[Grid]) -> Tensor:
        table = self._position_embeddings
        indices, weights = interpolate_position_grid(grids, self._grid_side, self._merge_size)
        corners = table[indices.to(table.device)].to(self._residual) * self._angles(weights)[..., None]
        return corners[0] + corners[1] + corners[2] + corners[3]
