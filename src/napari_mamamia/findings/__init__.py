"""Findings of a case: the answers on a form, the form's rules, and the lesions in the breast."""
