"""Import nibabel's headers without opening a socket."""

from napari_mamamia.core.program.hidden_package import without_package

__all__ = ["HeaderDataError", "Nifti1Header", "Nifti2Header", "data_type_codes"]

with without_package("requests"):
    from nibabel.nifti1 import Nifti1Header, data_type_codes
    from nibabel.nifti2 import Nifti2Header
    from nibabel.spatialimages import HeaderDataError
