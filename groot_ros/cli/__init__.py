"""Command-line tools: argument parsing only."""
