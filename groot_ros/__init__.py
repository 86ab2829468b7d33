"""Run NVIDIA GR00T N1.7 policies on ROS 2 robots: live, recorded, trained and evaluated by one contract."""

__version__ = "0.1.0"
