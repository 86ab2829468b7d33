"""The quality report of a dataset: what a person should know before paying for training on it."""
