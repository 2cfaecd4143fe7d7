"""Small DICOM studies made with pydicom for tests; nothing in them is of a patient."""

import struct

import numpy as np

MR = "1.2.840.10008.5.1.4.1.1.4"
ENHANCED_MR = "1.2.840.10008.5.1.4.1.1.4.1"
EXPLICIT, IMPLICIT, BIG_ENDIAN = (
    "1.2.840.10008.1.2.1",
    "1.2.840.10008.1.2",
    "1.2.840.10008.1.2.2",
)
AXIAL = (1, 0, 0, 0, 1, 0)
SAGITTAL = (0, 1, 0, 0, 0, -1)
SHAPE = (4, 16, 20)
ORIGIN = (-10.0, -20.0, 30.0)
SPACING = (0.5, 0.75)
GAP = 2.0


def dce_values(phase, shape=SHAPE, enhancing=True):
    """Return a body of 200 with air around it; a quarter of it doubles after phase 0."""
    values = np.zeros(shape, np.int16)
    values[:, 2:, 2:] = 200 + np.arange(shape[0])[:, None, None]
    if enhancing and phase:
        values[:, 4:12, 4:12] += np.int16(200 - 10 * phase)
    return values


def write_image(path, values, *, syntax=EXPLICIT, then=None, **elements):
    """Write one MR file of a plane; keyword arguments add, replace or (None) remove elements.

    `then` is called with the data set, such as to add private elements.
    """
    import pydicom

    wanted = {
        "SOPClassUID": MR,
        "SOPInstanceUID": pydicom.uid.generate_uid(),
        "StudyInstanceUID": "2.25.1",
        "SeriesInstanceUID": "2.25.100",
        "SeriesNumber": 1,
        "Modality": "MR",
        "ImageType": ["ORIGINAL", "PRIMARY", "M"],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "Rows": values.shape[-2],
        "Columns": values.shape[-1],
        "BitsAllocated": 8 * values.itemsize,
        "BitsStored": 8 * values.itemsize,
        "HighBit": 8 * values.itemsize - 1,
        "PixelRepresentation": int(values.dtype.kind == "i"),
        "PixelSpacing": list(SPACING),
        "ImageOrientationPatient": list(AXIAL),
        "ImagePositionPatient": list(ORIGIN),
        **elements,
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    is_big = syntax == BIG_ENDIAN
    pixels = values.astype(values.dtype.newbyteorder(">" if is_big else "<")).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    if then is None and len(pixels) % 2 == 0 and is_plain(wanted, syntax):
        path.write_bytes(plain_file(wanted, syntax, pixels))
        return
    image = pydicom.Dataset()
    image.file_meta = pydicom.dataset.FileMetaDataset()
    image.file_meta.TransferSyntaxUID = syntax
    for name, value in wanted.items():
        setattr(image, name, value)
    if then is not None:
        then(image)
    image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    image.PixelData = pixels
    image["PixelData"].VR = "OW"
    pydicom.dcmwrite(path, image, enforce_file_format=True)


# pydicom takes 2 ms to write an image, and the studies of the tests are ten thousands of images
# that differ in a few elements. So each element is encoded by pydicom once, and joined here.
_STANDS_ALONE = {}
_ENCODED = {}


def is_plain(wanted, syntax):
    """Say whether each element's bytes are the same whatever the others are."""
    if syntax not in (EXPLICIT, IMPLICIT):
        return False
    if not (wanted.get("SOPClassUID") and wanted.get("SOPInstanceUID")):
        return False
    for name, value in wanted.items():
        values = value if isinstance(value, list) else (value,)
        if not all(isinstance(one, str | int | float | bytes) for one in values):
            return False
        if name not in _STANDS_ALONE:
            _STANDS_ALONE[name] = _stands_alone(name)
        if not _STANDS_ALONE[name]:
            return False
    return True


def _stands_alone(name):
    from pydicom import datadict

    tag = datadict.tag_for_keyword(name) or 0
    is_apart = name == "SpecificCharacterSet" or not 8 <= tag >> 16 < 0x7FE0
    return not is_apart and " or " not in datadict.dictionary_VR(tag)


def plain_file(wanted, syntax, pixels):
    """Return the bytes that pydicom writes for these elements."""
    import pydicom
    from pydicom.uid import PYDICOM_IMPLEMENTATION_UID

    version = f"PYDICOM {'.'.join(pydicom.__version_info__)}"
    meta = struct.pack("<HH2sHL", 2, 1, b"OB", 0, 2) + b"\0\1"
    meta += _short_text(0x02, b"UI", wanted["SOPClassUID"])
    meta += _short_text(0x03, b"UI", wanted["SOPInstanceUID"])
    meta += _short_text(0x10, b"UI", syntax)
    meta += _short_text(0x12, b"UI", PYDICOM_IMPLEMENTATION_UID)
    meta += _short_text(0x13, b"SH", version)
    length = struct.pack("<HH2sHL", 2, 0, b"UL", 4, len(meta))
    parts = sorted(_element(name, value, syntax) for name, value in wanted.items())
    word = () if syntax == IMPLICIT else (b"OW", 0)
    last = struct.pack("<HH2sHL" if word else "<HHL", 0x7FE0, 0x10, *word, len(pixels))
    return b"".join([bytes(128), b"DICM", length, meta, *(part for _, part in parts), last, pixels])


def _short_text(element, kind, text):
    """Return an element of the file's group 2."""
    value = text.encode() + (b"\0" if kind == b"UI" else b" ") * (len(text) % 2)
    return struct.pack("<HH2sH", 2, element, kind, len(value)) + value


def _element(name, value, syntax):
    """Return an element's tag and its bytes."""
    key = (name, repr(value), syntax)
    if key not in _ENCODED:
        made = _encode(name, value, syntax)
        if name == "SOPInstanceUID":  # none comes twice
            return made
        _ENCODED[key] = made
    return _ENCODED[key]


def _encode(name, value, syntax):
    from pydicom import Dataset
    from pydicom.filebase import DicomBytesIO
    from pydicom.filewriter import write_dataset

    one = Dataset()
    setattr(one, name, value)
    stream = DicomBytesIO()
    stream.is_little_endian, stream.is_implicit_VR = True, syntax == IMPLICIT
    write_dataset(stream, one)
    return int(next(iter(one.keys()))), stream.getvalue()


def place(index, orientation=AXIAL, origin=ORIGIN, gap=GAP):
    """Return ImagePositionPatient of slice `index`."""
    normal = np.cross(orientation[:3], orientation[3:])
    return [float(v) for v in np.array(origin) + index * gap * normal]


def write_phase(folder, phase, *, prefix="IM", shape=SHAPE, values=None, gap=GAP, **elements):
    """Write one phase as single-frame files and return its values; elements may be functions.

    A function is called with (phase, slice) and returns the element's value.
    """
    values = dce_values(phase, shape) if values is None else values
    orientation = elements.get("ImageOrientationPatient", AXIAL)
    for index in range(len(values)):
        made = {n: v(phase, index) if callable(v) else v for n, v in elements.items()}
        write_image(
            folder / f"{prefix}_{phase}_{len(values) - index:03d}.dcm",
            values[index],
            **{"ImagePositionPatient": place(index, orientation, gap=gap), **made},
        )
    return values


def write_exam(folder, n_phases=3, *, per_phase=False, **elements):
    """Write an exam of one series (per_phase: one for each phase); return (phase, z, y, x)."""
    told = {"AcquisitionTime": lambda phase, _: f"10{phase:02d}{30 * (phase % 2):02d}"}
    if per_phase:
        told["SeriesInstanceUID"] = lambda phase, _: f"2.25.{200 + phase}"
        told["SeriesNumber"] = lambda phase, _: 5 + phase
    return np.stack([write_phase(folder, k, **{**told, **elements}) for k in range(n_phases)])


def without_contrast(phase, shape=SHAPE):
    """Return the body before contrast, with the noise of a scan of its own."""
    rng = np.random.default_rng(phase)
    return dce_values(0, shape) + rng.integers(0, 4, shape).astype(np.int16)


def item(**values):
    """Return a data set of these elements."""
    import pydicom

    found = pydicom.Dataset()
    for name, value in values.items():
        setattr(found, name, value)
    return found


def write_enhanced(path, volumes, times, *, components=None, frame=None, **elements):
    """Write an enhanced multi-frame file whose frames run place by place, all times of each.

    `components` names the ComplexImageComponent of each time's frames. `frame` is called with the
    functional groups of each frame and its time.
    """
    from pydicom.sequence import Sequence

    frames, planes = [], []
    for index in range(volumes.shape[1]):
        for time, volume in enumerate(volumes):
            content = item(FrameAcquisitionDateTime=times[time], TemporalPositionIndex=time + 1)
            position = item(ImagePositionPatient=place(index))
            groups = {
                "FrameContentSequence": Sequence([content]),
                "PlanePositionSequence": Sequence([position]),
            }
            if components is not None:
                kind = item(
                    FrameType=["ORIGINAL", "PRIMARY", "DYNAMIC", "NONE"],
                    ComplexImageComponent=components[time],
                )
                groups["MRImageFrameTypeSequence"] = Sequence([kind])
            frames.append(item(**groups))
            if frame is not None:
                frame(frames[-1], time)
            planes.append(volume[index])
    shared = item(
        PixelMeasuresSequence=Sequence([item(PixelSpacing=list(SPACING), SliceThickness=2)]),
        PlaneOrientationSequence=Sequence([item(ImageOrientationPatient=list(AXIAL))]),
    )
    write_image(
        path,
        np.stack(planes),
        **{
            "SOPClassUID": ENHANCED_MR,
            "NumberOfFrames": len(planes),
            "PixelSpacing": None,
            "ImageOrientationPatient": None,
            "ImagePositionPatient": None,
            "SharedFunctionalGroupsSequence": Sequence([shared]),
            "PerFrameFunctionalGroupsSequence": Sequence(frames),
            **elements,
        },
    )
