"""Proof that this implementation computes what another does: artifacts of the other one, comparison, report."""
