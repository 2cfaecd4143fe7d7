"""Read DICOM SEG, and write it on the slices on which the mask was drawn.

`ucsf` reads the private elements of UCSF's program.
"""
