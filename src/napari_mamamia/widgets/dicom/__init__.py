"""The Import page: table of series, images, choices and form."""
