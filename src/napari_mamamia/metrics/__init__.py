"""Plain functions of two masks and a grid; nan where a value is undefined."""
