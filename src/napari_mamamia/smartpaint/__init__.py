"""Painting a mask that follows the image: brush, growth, history, editing session."""
