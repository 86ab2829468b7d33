"""Torch-free numbers that data and policy share: normalisation, relative and rotation conversions, statistics."""
