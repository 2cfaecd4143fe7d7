"""Combine masks from several sources: orientation, labels, and fusion of readers."""
