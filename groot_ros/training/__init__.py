"""Fine-tuning on recorded data."""
