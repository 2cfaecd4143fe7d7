"""Paint a mask that follows the image: brush, growth, editing session, tools for whole masks."""
