"""A reader's drawn measurements on a case: their shapes, storage and values."""
