"""A reader's drawn measurements on a case: shapes, storage and numbers."""
