"""A reader's measurements on a case: from points to shapes, records and numbers."""
