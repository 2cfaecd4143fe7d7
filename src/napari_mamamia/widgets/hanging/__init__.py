"""The hanging protocol of a case: reading steps with PgDn and PgUp, and a prior exam.

`widgets/dock/parts.py` connects this package, and `services/case/hanging.py` chooses the steps. The
reader's own view is restored when the reader leaves the hanging protocol.
"""
