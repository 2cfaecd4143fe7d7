"""The hanging protocol of a case: reading steps with PgDn and PgUp, and a prior exam next to it.

`widgets/dock/parts.py` connects it. `services/case/hanging.py` decides on the steps; leaving the
hanging restores the reader's own view.
"""
