"""Tumour annotation and benchmark scoring on breast DCE-MRI."""

__all__ = ["__version__"]

__version__: str


def __getattr__(name: str) -> str:
    """Return the version when it is asked for: looking it up takes longer than all the rest here.

    Raises
    ------
    AttributeError
        For any other name.
    """
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("napari-mamamia")
