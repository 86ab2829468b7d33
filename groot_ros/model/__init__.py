"""The N1.7 network: backbone, category-specific layers, diffusion transformer, action head, sampler."""
