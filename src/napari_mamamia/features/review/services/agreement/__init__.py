"""How far a study's readers agree: masks, volumes, answers, repeats and honeypots."""
