"""Services of the commands for classifiers, detections and their tables."""
