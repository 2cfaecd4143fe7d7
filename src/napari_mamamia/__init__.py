"""Tumour annotation and benchmark scoring on breast DCE-MRI."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("napari-mamamia")
