"""Observations to model inputs, and action predictions to chunks: images, prompt, state, action."""
