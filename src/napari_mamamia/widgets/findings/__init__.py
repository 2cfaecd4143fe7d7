"""Page Findings: a form beside the picture, with or without a study; landmarks of the breasts."""
