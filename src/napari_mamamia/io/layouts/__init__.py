"""Layouts: path patterns, stored as data, that assign files to phases and masks of exams."""
