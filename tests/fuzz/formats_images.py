"""Volumes, DICOM in its forms, what a PACS answers: small valid examples and their readers."""

import gzip
import json
import zipfile
import zlib
from pathlib import Path
from unittest.mock import patch

import nibabel as nib
import numpy as np
from harness import Format
from made import from_tests

SHAPE = (3, 6, 5)


def _grid():
    from napari_mamamia.core.grid import Grid

    return Grid(SHAPE, np.diag([-0.7, 0.7, 2.0, 1.0]))


def _volume(name: str, four_d: bool = False, float_mask: bool = False):
    def make(folder: Path) -> Path:
        from napari_mamamia.io.data_set.volumes import write_volume

        values = np.arange(2 * np.prod(SHAPE), dtype=np.int16).reshape(2, *SHAPE)
        array = (
            values
            if four_d
            else (values[0] % 7 == 0).astype(np.float32 if float_mask else np.uint8)
        )
        write_volume(array, _grid(), folder / name)
        return folder / name

    return make


def _read_volume(path: Path) -> object:
    from napari_mamamia.io.data_set.volumes import read_phase_header, read_phase_into, read_volume
    from napari_mamamia.io.files.sources import PhaseSource

    read_volume(path)
    source = PhaseSource((path,))
    header = read_phase_header(source)
    return read_phase_into(source, header, np.empty(header.grid.shape, header.dtype))


def _read_mask(path: Path) -> object:
    from napari_mamamia.io.data_set.volumes import read_labels, read_labels_dense

    read_labels(path)
    return read_labels_dense(path)[1].sum()


def _metaimage(name: str, packed: bool = False):
    def make(folder: Path) -> Path:
        values = (np.arange(np.prod(SHAPE)) % 7 == 0).astype(np.uint8).tobytes()
        data = zlib.compress(values) if packed else values
        voxels = "LOCAL" if name.endswith(".mha") else "x.raw"
        head = (
            "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
            f"CompressedData = {packed}\nTransformMatrix = 0 1 0 -1 0 0 0 0 1\nOffset = 1 2 3\n"
            "AnatomicalOrientation = RAI\nElementSpacing = 0.7 0.7 2\nDimSize = 5 6 3\n"
            f"ElementType = MET_UCHAR\nElementDataFile = {voxels}\n"
        ).encode()
        (folder / name).write_bytes(head + (data if voxels == "LOCAL" else b""))
        if voxels != "LOCAL":
            (folder / voxels).write_bytes(data)
        return folder / name

    return make


def _nifti_pair(kind: str):
    def make(folder: Path) -> Path:
        values = (np.arange(np.prod(SHAPE)) % 7 == 0).astype(np.uint8).reshape(SHAPE[::-1])
        nib.save(getattr(nib, kind)(values, np.diag([-0.7, 0.7, 2.0, 1.0])), folder / "x.hdr")
        (folder / "x.mat").unlink(missing_ok=True)
        return folder / "x.hdr"

    return make


def _nhdr(folder: Path) -> Path:
    (folder / "x.raw").write_bytes(bytes(range(90)))
    (folder / "x.nhdr").write_text(
        "NRRD0004\ntype: uchar\ndimension: 3\nspace: LPS\nsizes: 5 6 3\nencoding: raw\n"
        "space directions: (1,0,0) (0,1,0) (0,0,1)\ndata file: x.raw\n\n"
    )
    return folder / "x.nhdr"


def _layered_seg(folder: Path) -> Path:
    layers = (np.arange(2 * np.prod(SHAPE)) % 7 == 0).astype(np.uint8)
    (folder / "x.seg.nrrd").write_bytes(
        b"NRRD0004\ntype: uchar\ndimension: 4\nspace: left-posterior-superior\nsizes: 2 5 6 3\n"
        b"space directions: none (1,0,0) (0,1,0) (0,0,1)\nkinds: list domain domain domain\n"
        b"encoding: gzip\nspace origin: (0,0,0)\nSegment0_Name:=a\nSegment0_LabelValue:=1\n"
        b"Segment0_Layer:=0\nSegment1_Name:=b\nSegment1_LabelValue:=1\nSegment1_Layer:=1\n\n"
        + gzip.compress(layers.tobytes())
    )
    return folder / "x.seg.nrrd"


def _read_segments(path: Path) -> object:
    from napari_mamamia.io.data_set.volumes import files_of_volume, read_labels
    from napari_mamamia.io.volumes.nrrd import read_layers
    from napari_mamamia.io.volumes.segments import read_segment_labels, read_segment_names

    files_of_volume(path)
    read_segment_names(path)
    read_labels(path, "b")
    read_layers(path)
    return read_segment_labels(path, 2)


def _read_seg_as_labels(path: Path) -> object:
    from napari_mamamia.io.seg.labels import read_seg_labels

    return read_seg_labels(path, "tumour")


def _folder_of_masks(folder: Path) -> Path:
    _volume("X_seg.nii.gz")(folder)
    (_made(folder / "Y") / "1.dcm").write_bytes(bytes(128) + b"DICM" + b"1.2.840.10008.5")
    return folder


def _list_masks(folder: Path) -> object:
    from napari_mamamia.io.data_set.mask_files import is_mask_file, list_masks
    from napari_mamamia.io.data_set.volumes import files_of_volume

    is_mask_file(folder / "Y" / "1.dcm")
    return [files_of_volume(path) for path in list_masks(folder, ["X", "Y"]).masks.values()]


def _submission_mask(folder: Path) -> Path:
    _volume("X.nii.gz")(_made(folder / "pred_segmentations"))
    return folder


def _take_mask(folder: Path) -> object:
    from napari_mamamia.segmentation.sandbox.outputs import take_mask

    return take_mask(folder, "X", _grid())


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


_VOLUME = (
    "io.data_set.volumes.read_header",
    "io.data_set.volumes.read_phase_header",
    "io.data_set.volumes.read_phase_into",
    "io.data_set.volumes.read_series_into",
    "io.data_set.volumes.read_volume",
)
_LABELS = ("io.data_set.volumes.read_labels", "io.data_set.volumes.read_labels_dense")


def _header_only(module: str, function: str):
    def read(path: Path) -> object:
        from importlib import import_module

        return getattr(import_module(f"napari_mamamia.{module}"), function)(path)

    return read


def _read_texts(path: Path) -> object:
    from napari_mamamia.io.volumes.nrrd import read_nrrd_pairs

    return read_nrrd_pairs(path, "Segment")


VOLUMES = (
    Format("nifti-4d-gz", _volume("x.nii.gz", four_d=True), _read_volume, _VOLUME, share=2),
    Format("nifti-4d", _volume("x.nii", four_d=True), _read_volume, _VOLUME),
    Format("nifti-mask", _volume("x.nii.gz"), _read_mask, _LABELS),
    Format("nifti-soft-mask", _volume("x.nii", float_mask=True), _read_mask, _LABELS),
    Format(
        "nifti-header",
        _volume("x.nii"),
        _header_only("io.volumes.nifti", "read_nifti_header"),
        ("io.volumes.nifti.read_nifti_header",),
    ),
    Format("nrrd", _volume("x.nrrd"), _read_volume, _VOLUME),
    Format("nrrd-mask", _volume("x.nrrd"), _read_mask, _LABELS),
    Format("metaimage", _metaimage("x.mha", packed=True), _read_volume, _VOLUME),
    Format("metaimage-mask", _metaimage("x.mhd"), _read_mask, _LABELS, called="x."),
    Format("nifti-pair", _nifti_pair("Nifti1Pair"), _read_mask, _LABELS, called="x."),
    Format("analyze", _nifti_pair("Spm99AnalyzeImage"), _read_mask, _LABELS, called="x."),
    Format("nrrd-detached", _nhdr, _read_mask, _LABELS, called="x."),
    Format(
        "slicer-segments",
        _layered_seg,
        _read_segments,
        (
            "io.volumes.nrrd.read_layers",
            "io.volumes.segments.read_segment_labels",
            "io.volumes.segments.read_segment_names",
        ),
    ),
    Format("mask-folder", _folder_of_masks, _list_masks, (), share=0.3),
    Format(
        "nrrd-header",
        _volume("x.nrrd"),
        _header_only("io.volumes.nrrd", "read_nrrd_header"),
        ("io.volumes.nrrd.read_nrrd_header",),
    ),
    Format(
        "nrrd-texts",
        _volume("x.nrrd"),
        _read_texts,
        ("io.volumes.nrrd.read_nrrd_pairs",),
        share=0.5,
    ),
    Format(
        "submission-mask",
        _submission_mask,
        _take_mask,
        ("segmentation.sandbox.outputs.take_mask",),
        called="the mask of X",
    ),
)


def _classic(folder: Path, **elements) -> Path:
    phantoms = from_tests("dicom_phantoms")
    told = {
        "PatientName": "Test^Phantom",
        "PatientID": "T1",
        "SeriesDescription": "dyn",
        "EchoTime": 1.5,
        "FrameOfReferenceUID": "2.25.6",
    }
    phantoms.write_exam(_made(folder), 2, **{**told, **elements}, shape=(3, 16, 20))
    return folder


def _two_studies(folder: Path) -> Path:
    _classic(folder / "a")
    _classic(folder / "b", StudyInstanceUID="2.25.2", SeriesInstanceUID="2.25.300")
    (folder / "DICOMDIR").write_bytes((folder / "a" / "IM_0_001.dcm").read_bytes())
    return folder


def _enhanced(folder: Path) -> Path:
    phantoms = from_tests("dicom_phantoms")
    volumes = np.stack([phantoms.dce_values(k, (3, 16, 20)) for k in range(2)])
    phantoms.write_enhanced(folder / "e.dcm", volumes, ["20200101100000", "20200101100130"])
    return folder


def _compressed(folder: Path) -> Path:
    import pydicom

    _classic(folder)
    for path in folder.glob("*.dcm"):
        image = pydicom.dcmread(path)
        image.compress(pydicom.uid.RLELossless)
        image.save_as(path, enforce_file_format=True)
    return folder


def _mosaic(folder: Path) -> Path:
    from_tests("io/test_dicom_mosaic").write_exam(folder, 2, 4)
    return folder


def _zipped(folder: Path) -> Path:
    source = folder.with_name("zip-source")
    _two_studies(source)
    with zipfile.ZipFile(folder / "study.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(source).as_posix())
            path.is_file() and path.unlink()
    return folder / "study.zip"


def _study_below(folder: Path) -> object:
    """Find the folder of a study as the export of a case that was imported does."""
    from napari_mamamia.io.dicom.facts import remapped_uid, user_secret
    from napari_mamamia.io.exam.study import _studies_below, imported_study

    _studies_below.cache_clear()
    return imported_study(folder, remapped_uid("2.25.1", user_secret()))


def _told(folder: Path) -> object:
    from napari_mamamia.io.dicom.persons import find_identifiers, names_nobody

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return find_identifiers(files), [names_nobody(path) for path in files]


def _volume_of_somebody(folder: Path) -> Path:
    image = nib.Nifti1Image(np.zeros((4, 4, 4), np.int16), np.eye(4))
    image.header["descrip"] = "Nobody^Nowhere"
    image.header.extensions.append(nib.nifti1.Nifti1Extension(6, b"of Nobody^Nowhere"))
    nib.save(image, folder / "a.nii.gz")
    return folder / "a.nii.gz"


def _json_of_somebody(folder: Path) -> Path:
    (folder / "a.json").write_text(json.dumps({"PatientName": ["Nobody"], "of": [{"StudyID": 7}]}))
    return folder / "a.json"


def _told_by_volume(path: Path) -> object:
    from napari_mamamia.io.dicom.persons import _read_volume_identifiers

    return _read_volume_identifiers(path)


def _searched(path: Path) -> object:
    """Search a packed file for what tells the patient, as the export does with its own."""
    from napari_mamamia.io.privacy.identifier_search import search_file
    from napari_mamamia.io.privacy.identifiers import Identifier, signs_of

    name = Identifier("PatientName", "Nobody^Nowhere", "name")
    return search_file(path, signs_of([name]))


def _zip_of_images(folder: Path) -> Path:
    source = _classic(folder / "made")
    with zipfile.ZipFile(folder / "study.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(source.iterdir()):
            archive.write(path, path.name)
            path.unlink()
    return folder / "study.zip"


def _look_at_zip(path: Path) -> object:
    from napari_mamamia.io.dicom.probe import dicom_source

    return dicom_source([path])


def _read_exam(folder: Path) -> object:
    """What the window does: the phases of a folder, their headers, all voxels."""
    from napari_mamamia.io.data_set.volumes import read_phase_header, read_phase_into
    from napari_mamamia.io.dicom.probe import looks_like_dicom
    from napari_mamamia.io.exam.phases import find_phases

    looks_like_dicom(folder, sorted(path.name for path in folder.iterdir()))
    for source in find_phases(folder).phases:
        header = read_phase_header(source)
        read_phase_into(source, header, np.empty(header.grid.shape, header.dtype))
    return None


def _import(source: Path) -> object:
    """What `mamamia import` does, without writing phases."""
    from napari_mamamia.core.choices import Dates
    from napari_mamamia.io.dicom.facts import read_facts
    from napari_mamamia.io.dicom.pixels import fill_planes
    from napari_mamamia.io.dicom.probe import dicom_source
    from napari_mamamia.services.dicom.finding import look_into

    dicom_source([source])
    found = look_into(source)
    for study in found:
        if study.exam is not None and source.is_dir():
            stack = study.exam.stacks[0]
            read_facts(stack[0].file, ("2.25.1",), b"secret", Dates.SHIFT)
            fill_planes(stack, np.empty(study.exam.grid.shape, stack[0].stored))
    return found


def _read_seg_source(folder: Path) -> object:
    from napari_mamamia.io.files.sources import PhaseSource
    from napari_mamamia.io.seg.writer import source_images

    return source_images(PhaseSource(tuple(sorted(folder.glob("*.dcm")))))


def _read_timing(folder: Path) -> object:
    from napari_mamamia.io.exam.phases import read_scan_timing

    files = sorted(folder.glob("*.dcm"))
    return read_scan_timing(files[-1], files[0])


def _seg(folder: Path) -> Path:
    tests = from_tests("io/test_dicom_seg")
    from napari_mamamia.io.data_set.volumes import read_phase_header
    from napari_mamamia.io.layouts.find import find_data_set
    from napari_mamamia.io.seg.writer import write_segmentation

    series = folder.with_name("seg-series")
    if not series.exists():
        tests.write_series(series)
    source = find_data_set(series).cases[0].phases[0]
    grid = read_phase_header(source).grid
    labels = np.zeros(grid.shape, np.uint8)
    labels[1:3, 2:5, 2:5] = 1
    write_segmentation(
        labels, ((1, "tumour"),), grid, source, grid, tests.BY_MODEL, folder / "seg.dcm"
    )
    return folder / "seg.dcm"


def _read_seg(path: Path) -> object:
    from napari_mamamia.io.seg.seg import read_segmentation

    return read_segmentation(path)


def _ucsf_seg(folder: Path) -> Path:
    made = from_tests("io/made_ucsf_seg")
    mask = np.zeros(SHAPE, bool)
    mask[:, 2:5, 1:4] = True
    return made.write_ucsf_seg(
        folder / "ucsf.dcm",
        mask,
        [(0, 0, 2.0 * k) for k in range(SHAPE[0])],
        [made.region((2, 2, 2), (2, 2, 3))],
        [made.measure(0, 27, 0.03, "FTVpe(PEearly>70%)")],
    )


def _read_ucsf_seg(path: Path) -> object:
    from napari_mamamia.core.errors import GridMismatchError
    from napari_mamamia.core.grid import Grid
    from napari_mamamia.io.seg.ucsf import is_segmentation, read_ucsf_seg
    from napari_mamamia.services.kinetics.ftv_from import place_seg

    is_segmentation(path)
    found = read_ucsf_seg(path)
    try:
        return place_seg(found, Grid(SHAPE, np.diag([-0.8, -0.8, 2.0, 1.0]))).mask.sum()
    except GridMismatchError:  # names no file: the case is no part of it
        return None


_DICOM = (
    "io.exam.phases.find_phases",
    "io.exam.phases.read_dicom_header",
    "io.exam.phases.read_dicom_into",
    "io.dicom.headers.read_slices",
    "io.dicom.files.read_studies",
    "io.dicom.pixels.fill_planes",
)
_IMPORT = (
    "io.dicom.facts.read_facts",
    "io.dicom.headers.read_slices",
    "io.dicom.files.read_studies",
)


def _web(folder: Path) -> Path:
    def entry(**more):
        return {
            "0020000D": {"vr": "UI", "Value": ["2.25.1"]},
            "00080020": {"vr": "DA", "Value": ["20200101"]},
            "0020000E": {"vr": "UI", "Value": ["2.25.2"]},
            "00080018": {"vr": "UI", "Value": ["2.25.3"]},
            "00081030": {"vr": "LO", "Value": ["MR"]},
            "00080061": {"vr": "CS", "Value": ["MR"]},
            "00201208": {"vr": "IS", "Value": [4]},
            **more,
        }

    (folder / "studies.json").write_text(json.dumps([entry(), entry()]))
    source = _classic(folder / "made", SOPInstanceUID="2.25.3")
    image = sorted(source.glob("*.dcm"))[0].read_bytes()
    for path in source.glob("*"):
        path.unlink()
    head = b"--cut\r\nContent-Type: application/dicom\r\n\r\n"
    (folder / "image.multipart").write_bytes(head + image + b"\r\n--cut--\r\n")
    return folder / "studies.json"


_LIST = "application/dicom+json"
_PARTS = 'multipart/related; type="application/dicom"; boundary=cut'


def _ask_pacs(path: Path) -> object:
    """Answer every request with the file, as a PACS that is broken or hostile would."""
    import requests

    from napari_mamamia.io.pacs import limits as dicom_web_limits
    from napari_mamamia.io.pacs import web as dicom_web

    class Answers(requests.adapters.BaseAdapter):
        def send(self, request, **_):
            answer = requests.Response()
            is_image = "/instances/" in request.url
            file, kind = (path.with_name("image.multipart"), _PARTS) if is_image else (path, _LIST)
            answer.status_code, answer.raw, answer.request = 200, file.open("rb"), request
            answer.headers["Content-Type"] = kind
            answer.url = request.url
            return answer

        def close(self):
            pass

    with patch.object(dicom_web_limits, "_Adapter", lambda _: Answers()):
        dicom_web.find_studies_on("http://pacs/dicom-web")
        return dicom_web.fetch_study("http://pacs/dicom-web", "2.25.1", path.parent / "to")


DICOM = (
    Format("dicom-classic", _classic, _read_exam, _DICOM, share=2, called="series 1"),
    Format("dicom-enhanced", _enhanced, _read_exam, _DICOM, share=2, called="series 1"),
    Format("dicom-mosaic", _mosaic, _read_exam, _DICOM, called="series 1"),
    Format("dicom-rle", _compressed, _read_exam, _DICOM, called="series 1"),
    Format(
        "dicom-import", _two_studies, _import, (*_IMPORT, "io.dicom.facts.names_a_person"), share=2
    ),
    Format(
        "dicom-persons",
        _two_studies,
        _told,
        ("io.dicom.persons._ask_file", "io.dicom.persons.names_nobody"),
    ),
    Format(
        "volume-persons",
        _volume_of_somebody,
        _told_by_volume,
        ("io.dicom.persons._read_volume_identifiers",),
        share=0.3,
    ),
    Format(
        "json-persons",
        _json_of_somebody,
        _told_by_volume,
        ("io.dicom.persons._read_volume_identifiers",),
        share=0.3,
    ),
    Format(
        "searched-zip", _zipped, _searched, ("io.privacy.identifier_search.search_file",), share=0.5
    ),
    Format("dicom-zip", _zipped, _import, ("io.dicom.zip.unpack",)),
    Format("dicom-dropped-zip", _zip_of_images, _look_at_zip, ("io.dicom.probe.dicom_source",)),
    Format("dicom-study", _two_studies, _study_below, ("io.exam.study.imported_study",)),
    Format("dicom-timing", _classic, _read_timing, ("io.exam.phases.read_scan_timing",), share=0.3),
    Format("dicom-seg", _seg, _read_seg, ("io.seg.seg.read_segmentation",), share=0.7),
    Format(
        "dicom-seg-labels",
        _seg,
        _read_seg_as_labels,
        ("io.seg.labels.read_seg_labels",),
        share=0.5,
    ),
    Format(
        "dicom-seg-ucsf",
        _ucsf_seg,
        _read_ucsf_seg,
        ("io.seg.ucsf.is_segmentation", "io.seg.ucsf.read_ucsf_seg"),
        share=0.7,
    ),
    Format(
        "dicom-seg-source",
        _classic,
        _read_seg_source,
        ("io.seg.writer.source_images",),
        share=0.5,
    ),
    Format(
        "dicom-web",
        _web,
        _ask_pacs,
        ("io.pacs.web.find_studies_on", "io.pacs.web.fetch_study"),
        called="http://pacs",
    ),
)
