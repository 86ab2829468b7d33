"""Artifacts of the original implementation, and the comparison with ours."""
