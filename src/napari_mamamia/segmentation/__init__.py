"""Segmenters, which predict a tumour mask from a case."""
