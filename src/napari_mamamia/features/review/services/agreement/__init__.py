"""Agreement of a study's readers: masks, volumes, answers, hidden repeats and honeypots."""
