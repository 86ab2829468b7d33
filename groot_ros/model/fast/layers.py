"""Linear layers and norms in the form in which they run fastest, taken out of the modules that held them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the field's own name

GELU_TANH = ("gelu", "tanh")
NOTHING = ("none", "")


@dataclass(frozen=True)
class Form:
    """How the prepared layers compute.

    Attributes:
        residual: Number type of norms, residual sums and modulation. Products run in the type of the weights.
        packed: Whether weights are reordered once into the blocks that the CPU's matrix kernels read. Until then they
            may lie in a mapped file.

    """

    residual: torch.dtype
    packed: bool

    def own(self, tensor: Tensor) -> Tensor:
        """A tensor that is kept as it is, in memory of its own: the file that it came from may change."""
        return tensor.clone() if self.packed else tensor


class FastLinear:
    """A linear layer, and the tanh form of GELU after it where asked.

    Args:
        weight: ``(outputs, inputs)``.
        bias: ``(outputs,)``.
        form: How to compute.
        gelu: Whether GELU follows.

    """

    def __init__(self, weight: Tensor, bias: Tensor | None, form: Form, *, gelu: bool = False) -> None:
        self.dtype = weight.dtype
        self.outputs = weight.shape[0]
        self._bias = None if bias is None else form.own(bias)
        self._gelu = gelu
        self._packed = form.packed
        # The blocks are those for many rows: they serve few rows as well, and no row count needs another copy.
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight) if form.packed else weight

    @classmethod
    def of(cls, layers: Sequence[nn.Module], form: Form, *, gelu: bool = False) -> FastLinear:
        """Several layers that read the same input as one; their weights leave the modules."""
        linears = cast("Sequence[nn.Linear]", layers)
        weights = [linear.weight.detach() for linear in linears]
        biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        bias = torch.cat(biases) if biases else None
        del weights
        for linear in linears:
            release(linear)
        return cls(weight, bias, form, gelu=gelu)

    def __call__(self, x: Tensor) -> Tensor:
        """``(..., inputs)`` of any float type to ``(..., outputs)`` in the type of the weights."""
        x = x.to(self.dtype)
        if self._packed:
            operation, algorithm = GELU_TANH if self._gelu else NOTHING
            output: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, operation, [], algorithm)
            return output
        output = F.linear(x, self._weight, self._bias)
        return F.gelu(output, approximate="tanh") if self._gelu else output


class FastNorm:
    """A layer norm with its own weights."""

    def __init__(self, norm: nn.LayerNorm, form: Form) -> None:
        self._shape = norm.normalized_shape
        self._weight = norm.weight.detach().to(form.residual)
        self._bias = norm.bias.detach().to(form.residual)
        self._eps = norm.eps
        release(norm)

    def __call__(self, x: Tensor) -> Tensor:
        """``(..., width)``."""
        return F.layer_norm(x, self._shape, self._weight, self._bias, self._eps)


class FastRMSNorm:
    """Qwen's root-mean-square norm."""

    def __init__(self, norm: nn.Module, form: Form) -> None:
        self._weight = cast("Tensor", norm.weight).detach().to(form.residual)
        self._eps = cast("float", norm.variance_epsilon)
        self._residual = form.residual
        release(norm)

    def __call__(self, x: Tensor) -> Tensor:
        """``(..., width)`` of any float type to the type of the norms."""
        return F.rms_norm(x.to(self._residual), self._weight.shape, self._weight, self._eps)


def can_pack(dtype: torch.dtype) -> bool:
    """Whether packing serves weights of a type: bfloat16, where torch has the kernels. Float32 gains nothing by it."""
    return (
        dtype == torch.bfloat16
        and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def rotate(x: Tensor, cosine: Tensor, signed_sine: Tensor) -> Tensor:
    """Rotary position embedding in the type of the angles; the sine carries the sign of `signed`.

    Sums in place: the plain form spends several times as long on a CPU, most of it on mixed types and on `cat`.
    """
    x = x.to(cosine.dtype)
    half = x.shape[-1] // 2
    rotated = x * cosine
    rotated[..., :half].addcmul_(x[..., half:], signed_sine[..., :half])
    rotated[..., half:].addcmul_(x[..., :half], signed_sine[..., half:])
    return rotated


def signed(sine: Tensor) -> Tensor:
    """The sines of rotary angles ``(..., head_dim)`` with their first half negated, as `rotate` wants them."""
    first, second = sine.chunk(2, dim=-1)
    return torch.cat([-first, second], dim=-1)


def release(module: nn.Module) -> None:
    """Let go of a module's weights; it cannot compute afterwards."""
    module.to("meta")
