"""Reader agreement in a study: masks, volumes, answers, hidden repeats and honeypots."""
