"""The hanging protocol of a case: reading steps by PgDn and PgUp, and a prior exam.

`widgets/dock/parts.py` connects it. `services/case/hanging.py` chooses the steps. Leaving the
hanging protocol restores the reader's own view.
"""
