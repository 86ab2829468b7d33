"""LeRobot datasets: reader and writer, statistics, quality report, bag conversion."""
