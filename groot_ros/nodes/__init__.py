"""Everything that imports rclpy, and nothing else does."""
