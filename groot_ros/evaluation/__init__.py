"""Replay of bags and datasets through the policy, metrics and report."""
