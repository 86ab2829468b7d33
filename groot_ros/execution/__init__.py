"""A plan over time: which row is due now, how two chunks join, what limits hold. Pure functions of time."""
