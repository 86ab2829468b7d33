"""The parameters of ``groot_policy``: declared once with their descriptions, checked whenever one is set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from groot_ros.errors import GrootError
from groot_ros.policy import DTYPES
from groot_ros.processing.rollout import TRANSFORMS

NO_SEED = -1
LARGEST_SEED = 2**63 - 1
LONGEST_KEEP_WARM_S = 60.0


@dataclass(frozen=True)
class Setting:
    """One parameter.

    Attributes:
        default: Its value where none is given.
        description: What it does.
        fixed: Whether it is given at the start and never changes.
        live: Whether it may change while the node is configured; any other takes effect at the next configure.
        numbers: Lowest and highest value of a number.
        choices: The allowed words, where there are only a few.

    """

    default: str | bool | int | float
    description: str
    fixed: bool = False
    live: bool = False
    numbers: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()


SETTINGS = {
    "checkpoint": Setting("", "GR00T N1.7 checkpoint: a folder, or a hub id where allow_download is true"),
    "contract": Setting("", "the robot contract, a YAML file"),
    "embodiment_tag": Setting("", "embodiment of the checkpoint; empty: the contract's"),
    "device": Setting("auto", "auto, cpu, cuda or cuda:N; auto takes CUDA where there is one"),
    "dtype": Setting("", "number type of the weights; empty: bfloat16 on CUDA, else float32", choices=("", *DTYPES)),
    "backbone": Setting("", "folder with the backbone's tokenizer and image processor; empty: found by the checkpoint"),
    "allow_download": Setting(False, "whether files may be fetched from the Hugging Face hub"),
    "action_decode_transform": Setting("auto", "rollout transform of the embodiment", choices=TRANSFORMS),
    "instruction": Setting("", "the task in words at the start; empty: the contract's"),
    "dry_run": Setting(True, "compute and publish everything, but send no command to the robot", fixed=True),
    "auto_enable": Setting(False, "enable motion by itself once active; needs dry_run false", fixed=True),
    "autostart": Setting(False, "configure and activate by itself", fixed=True),
    "seed": Setting(
        NO_SEED,
        "seed of the noise of every inference, for repeatable actions; -1: new noise each time",
        live=True,
        numbers=(NO_SEED, LARGEST_SEED),
    ),
    "keep_warm_period_s": Setting(
        1.0,
        "seconds between inferences while motion is disabled, which keep the device at its clocks; 0: none",
        live=True,
        numbers=(0.0, LONGEST_KEEP_WARM_S),
    ),
}


@dataclass(frozen=True)
class ConfigureSettings:
    """The values that configuring takes."""

    checkpoint: str
    contract: Path
    embodiment_tag: str | None
    device: str
    dtype: str | None
    backbone: Path | None
    allow_download: bool
    action_decode_transform: str
    instruction: str


class PolicyParameters:
    """Declares the parameters on a node and guards them.

    Args:
        node: The node.
        is_configured: Whether the node holds a policy now, so that what configuring takes must not change.

    """

    def __init__(self, node: Node, is_configured: Callable[[], bool]) -> None:
        self._node = node
        self._is_configured = is_configured
        for name, setting in SETTINGS.items():
            node.declare_parameter(name, setting.default, _descriptor(setting))
        faults = [fault for name in SETTINGS if (fault := _fault(name, self._value(name)))]
        if self.auto_enable and self.dry_run:
            faults.append("auto_enable is true, but a dry run sends no command; set dry_run to false as well")
        if faults:
            raise GrootError("; ".join(faults))
        node.add_on_set_parameters_callback(self._check)

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be sent to the robot."""
        return bool(self._value("dry_run"))

    @property
    def auto_enable(self) -> bool:
        """Whether motion is enabled without a call of the service."""
        return bool(self._value("auto_enable"))

    @property
    def autostart(self) -> bool:
        """Whether the node configures and activates itself."""
        return bool(self._value("autostart"))

    @property
    def seed(self) -> int | None:
        """Seed of each inference; None for new noise."""
        seed = int(self._value("seed"))
        return None if seed == NO_SEED else seed

    @property
    def keep_warm_period_s(self) -> float:
        """Time between inferences while disabled; 0 for none."""
        return float(self._value("keep_warm_period_s"))

    def configure_settings(self) -> ConfigureSettings:
        """What configuring takes.

        Raises:
            GrootError: The checkpoint or the contract is not given.

        """
        for name in ("checkpoint", "contract"):
            if not self._value(name):
                msg = f"parameter {name}: found nothing; give {SETTINGS[name].description}"
                raise GrootError(msg)
        backbone = str(self._value("backbone"))
        return ConfigureSettings(
            checkpoint=str(self._value("checkpoint")),
            contract=Path(str(self._value("contract"))).expanduser(),
            embodiment_tag=str(self._value("embodiment_tag")) or None,
            device=str(self._value("device")),
            dtype=str(self._value("dtype")) or None,
            backbone=Path(backbone).expanduser() if backbone else None,
            allow_download=bool(self._value("allow_download")),
            action_decode_transform=str(self._value("action_decode_transform")),
            instruction=str(self._value("instruction")),
        )

    def _value(self, name: str) -> Any:  # noqa: ANN401 - a parameter's value
        return self._node.get_parameter(name).value

    def _check(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            setting = SETTINGS.get(parameter.name)
            if setting is None:
                continue
            fault = _fault(parameter.name, parameter.value)
            if fault is None and not setting.live and self._is_configured():
                fault = f"parameter {parameter.name} is read when the node is configured: deactivate and clean up first"
            if fault is not None:
                return SetParametersResult(successful=False, reason=fault)
        return SetParametersResult(successful=True)


def _fault(name: str, value: Any) -> str | None:  # noqa: ANN401 - a parameter's value
    """What is wrong with a value, beyond what its descriptor says; None where nothing is."""
    choices = SETTINGS[name].choices
    if choices and value not in choices:
        return f"parameter {name}: found {value!r}; allowed are {', '.join(choice or 'nothing' for choice in choices)}"
    if name == "device" and str(value).split(":", maxsplit=1)[0] not in {"auto", "cpu", "cuda"}:
        return f"parameter device: found {value!r}; allowed are auto, cpu, cuda and cuda:N"
    return None


def _descriptor(setting: Setting) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(description=setting.description, read_only=setting.fixed)
    if setting.choices:
        descriptor.additional_constraints = "one of: " + ", ".join(choice or '""' for choice in setting.choices)
    if setting.numbers is not None:
        low, high = setting.numbers
        if isinstance(setting.default, float):
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high, step=0.0)]
        else:
            descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    return descriptor
