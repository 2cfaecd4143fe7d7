"""The user's own folder: predictions, refined masks, scores; a data set is never written to.

`workspace` is its layout, `mark` whose it is, `place` how it is found again. `journal` has every
step of an edit on the disk when the mouse button is up. `event_store` is a file for each writer,
merged at reading; `case_tags`, `measurements` and `findings` are its events. `provenance` stands
beside each mask, `preferences` is what is remembered between sessions.
"""
