"""The Findings page: a form next to the image, within or without a study; breast landmarks."""
