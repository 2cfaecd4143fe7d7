"""Report pages: figures, tables and HTML made from scoring results."""
