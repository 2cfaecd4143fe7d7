"""What leaves a study: accepted masks, answers, tables for other tools, events."""
