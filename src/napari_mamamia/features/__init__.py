"""Features: each folder adds commands, pages and names to the core, which never imports it."""
