"""The user's own folder: predictions, refined masks, scores. A data set is never written to.

`workspace` is its layout, `mark` records its data set, `place` finds it. `journal` saves every step
of an edit to disk when the mouse button is released. `event_store` keeps a file for each writer and
merges them when reading; `case_tags`, `measurements` and `findings` are its events. `provenance` is
stored beside each mask, `preferences` between sessions.
"""
