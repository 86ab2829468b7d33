"""The demo robot's pure parts: a planar arm, simulated, filmed, driven by an expert, under a controller's rules."""
