"""The user's own folder of predictions, refined masks and scores for a data set.

A data set itself is never written to. `workspace` is the folder's layout, `mark` records its data
set, `place` finds it. `journal` saves every step of an edit to disk when the mouse button is
released. `event_store` keeps a file for each writer and merges them when reading; `case_tags`,
`measurements` and `findings` are its events. `provenance` is stored beside each mask, `preferences`
between sessions.
"""
