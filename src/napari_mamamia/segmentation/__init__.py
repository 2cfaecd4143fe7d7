"""Segmenters that predict a tumour mask from a case."""
