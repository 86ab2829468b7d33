"""ROS messages to and from arrays; duck-typed, so live messages and bags take one road."""
