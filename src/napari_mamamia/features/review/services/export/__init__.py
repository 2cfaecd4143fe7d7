"""Export of a study: accepted masks, answers, tables for other tools, and events."""
