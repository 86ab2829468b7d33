"""A GR00T N1.7 checkpoint directory, as typed metadata and tensors."""
