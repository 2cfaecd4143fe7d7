"""Painting of masks that follow the image: brush, growth, editing session, mask tools."""
