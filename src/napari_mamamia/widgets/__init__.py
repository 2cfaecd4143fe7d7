"""Everything that knows napari or Qt."""
