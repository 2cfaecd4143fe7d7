"""DICOM SEG: read, and written on the slices that it was drawn on.

`ucsf` reads what UCSF's program wrote into its own.
"""
