"""The robot contract: YAML to a typed, validated description of one robot; the only place that knows its keys."""

from groot_ros.contract.contract import Contract
from groot_ros.contract.loading import load_contract, parse_contract
from groot_ros.contract.unit_check import UnitReading, UnitVerdict, read_units

__all__ = ["Contract", "UnitReading", "UnitVerdict", "load_contract", "parse_contract", "read_units"]
