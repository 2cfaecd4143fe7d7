"""Findings of a case: answers to a form, its rules, and lesions in the breast."""
