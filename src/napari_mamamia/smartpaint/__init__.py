"""Painting a mask that follows the image: brush, growth, session; tools for whole masks."""
