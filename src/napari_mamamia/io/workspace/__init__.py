"""The user's folder with predictions, edited masks and scores for a data set.

A data set itself is never changed. `workspace` defines the layout of the folder; `place` finds the
folder and records its data set. `journal` saves every step of an edit to disk when the mouse button
is released. `event_store` stores one file for each writer and merges the files when reading;
`case_tags`, `measurements` and `findings` are its events. `provenance` is stored next to each mask,
and `preferences` are stored between sessions.
"""
