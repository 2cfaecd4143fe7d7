"""The Findings page: a form next to the image, with or without a study, and breast landmarks."""
