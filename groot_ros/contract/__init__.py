"""The robot contract: YAML to a typed, validated description of one robot; the only place that knows its keys."""

from groot_ros.contract.contract import Contract
from groot_ros.contract.loading import load_contract, parse_contract

__all__ = ["Contract", "load_contract", "parse_contract"]
