"""Numbers that data and policy share, without torch: normalisation, rotations, relative actions, statistics."""
