"""Page Findings: a form next to the image, with or without a study; landmarks of the breasts."""
