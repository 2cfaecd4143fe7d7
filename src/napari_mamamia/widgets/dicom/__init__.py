"""The page Import: the table of parts, pictures, choices, and the form."""
