"""What `mamamia` does with classifiers, detections and their tables."""
