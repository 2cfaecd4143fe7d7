"""Everything that knows napari or Qt: one dock with pages. No science, no file access."""
