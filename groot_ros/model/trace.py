"""Watch the stages of the network while it runs, for comparing it with another implementation stage by stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from groot_ros.model.model import GrootN17


@contextmanager
def trace_stages(network: GrootN17) -> Iterator[dict[str, Tensor]]:
    """Record the stages of every run of the network inside the block. Outside it, nothing is different.

    A second run overwrites the first. The stages, in the order in which they arise:

    - ``vision.patch_embeddings``, ``vision.block.<i>``, ``vision.deepstack.<i>``, ``vision.features``
    - ``language.embeddings``: the tokens with the image features in their places
    - ``language.layer.<i>``: after the layer, before its deepstack addition
    - ``language.features``: what the backbone returns
    - ``vlln``, ``vl_self_attention``, ``state_features``
    - ``denoising.<k>.actions`` entering step k, ``denoising.<k>.block.<i>``, ``denoising.<k>.transformer`` and
      ``denoising.<k>.velocity`` (state token included) of the step

    Args:
        network: The network to watch.

    Yields:
        Stage to tensor, filled while the network runs. The tensors are the network's own, detached, not copies.

    """
    stages: dict[str, Tensor] = {}
    with ExitStack() as hooks:
        recorder = _Recorder(stages, hooks)
        _watch_backbone(network, recorder)
        _watch_action_head(network, recorder)
        yield stages


class _Recorder:
    """Puts outputs and inputs of modules into the stages, and counts the denoising steps."""

    def __init__(self, stages: dict[str, Tensor], hooks: ExitStack) -> None:
        self.stages = stages
        self.hooks = hooks
        self.step = -1

    def output(self, module: nn.Module, stage: str, *, next_chunk: bool = False) -> None:
        """Record what a module returns; ``{step}`` in the name becomes the denoising step.

        With ``next_chunk`` the call of the module precedes the denoising of a chunk, and steps count from 0 again.
        """

        def record(_module: nn.Module, _inputs: Any, output: Tensor) -> None:  # noqa: ANN401 - torch's hook
            if next_chunk:
                self.step = -1
            self.stages[stage.format(step=self.step)] = output.detach()

        handle = module.register_forward_hook(record)
        self.hooks.callback(handle.remove)

    def first_input(self, module: nn.Module, stage: str, *, next_step: bool = False) -> None:
        """Record the first argument of a module; with ``next_step`` its call begins a denoising step."""

        def record(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            self.step += next_step
            self.stages[stage.format(step=self.step)] = inputs[0].detach()

        handle = module.register_forward_pre_hook(record)
        self.hooks.callback(handle.remove)


def _watch_backbone(network: GrootN17, recorder: _Recorder) -> None:
    visual, language_model = network.backbone.visual, network.backbone.language_model
    recorder.output(visual.patch_embed, "vision.patch_embeddings")
    for index, block in enumerate(visual.blocks):
        recorder.output(block, f"vision.block.{index}")
    for index, merger in enumerate(visual.deepstack_merger_list):
        recorder.output(merger, f"vision.deepstack.{index}")
    recorder.output(visual.merger, "vision.features")
    recorder.first_input(language_model, "language.embeddings")
    for index, layer in enumerate(language_model.layers):
        recorder.output(layer, f"language.layer.{index}")
    recorder.output(language_model, "language.features")


def _watch_action_head(network: GrootN17, recorder: _Recorder) -> None:
    head = network.action_head
    recorder.output(head.vlln, "vlln")
    recorder.output(head.vl_self_attention, "vl_self_attention")
    recorder.output(head.state_encoder, "state_features", next_chunk=True)
    recorder.first_input(head.action_encoder, "denoising.{step}.actions", next_step=True)
    for index, block in enumerate(head.model.transformer_blocks):
        recorder.output(block, f"denoising.{{step}}.block.{index}")
    recorder.output(head.model, "denoising.{step}.transformer")
    recorder.output(head.action_decoder, "denoising.{step}.velocity")
