"""The hanging of a case: steps of reading that PgDn and PgUp walk, and a prior exam beside it.

`widgets/dock/parts.py` joins it. Rule: which steps there are is said by `services/case/hanging.py`,
and leaving gives the reader's own view back as it was.
"""
