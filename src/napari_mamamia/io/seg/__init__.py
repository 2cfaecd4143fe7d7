"""Read DICOM SEG, and write it on the slices that the mask was drawn on.

`ucsf` reads the private elements of UCSF's program.
"""
