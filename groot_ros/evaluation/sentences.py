"""Figures in sentences."""

from __future__ import annotations


def figure(value: float) -> str:
    """A number with three digits that count, without an exponent where it can be done without."""
    if value == 0.0:
        return "0"
    if 1e-4 <= abs(value) < 1e6:
        text = f"{value:.3g}"
        return f"{value:.0f}" if "e" in text else text
    return f"{value:.2e}"


def times(count: int) -> str:
    """How often."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
