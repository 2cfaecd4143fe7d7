"""What a pseudonymous SEG takes over from its source images."""

from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import JPEGBaseline8Bit

from napari_mamamia.io.dicom.pseudonym import Pseudonym, without_person


def test_a_lossy_source_is_still_lossy_without_its_patient():
    image = Dataset()
    image.file_meta = FileMetaDataset()
    image.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    image.PatientName = "Doe^Jane"
    image.StudyInstanceUID = "1.2.3"
    image.LossyImageCompression = "01"
    image.LossyImageCompressionRatio = "9.5"
    image.LossyImageCompressionMethod = "ISO_10918_1"
    copied = without_person(image, Pseudonym("CASE_1", b"secret"))
    assert copied.LossyImageCompression == "01"
    assert copied.LossyImageCompressionRatio == 9.5
    assert copied.LossyImageCompressionMethod == "ISO_10918_1"
    assert "Doe" not in str(copied)
    assert copied.PatientID == "CASE_1"
