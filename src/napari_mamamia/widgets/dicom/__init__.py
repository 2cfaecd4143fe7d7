"""The import page behind the tab Cases: the table of parts, pictures, choices, the form."""
