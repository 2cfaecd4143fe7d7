"""Layouts as data: patterns of paths that assign files to phases and masks of exams."""
