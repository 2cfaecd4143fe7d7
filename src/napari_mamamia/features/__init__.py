"""Features, which add commands, pages and library names to the core; it imports none of them."""
