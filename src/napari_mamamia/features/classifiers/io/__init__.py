"""Readers for tables of detected lesions."""
