"""Protocols of breast MR studies as small DICOM folders, each with the verdict that it must get.

A volume is a body with a gland, a heart and a tumour; contrast changes all but the body's fat. The
protocols and verdicts follow what scanners of several vendors write; nothing in them is of a
patient. `PROTOCOLS` is the list: a name, what writes the study, and what an import makes of it.
"""

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parent / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

SHAPE = (4, 40, 48)
TIMES = (0, 75, 150, 225, 300, 375)
DYN = {
    "ScanningSequence": "GR", "SequenceVariant": "SP", "MRAcquisitionType": "3D",
    "RepetitionTime": 4.1, "EchoTime": 1.4, "FlipAngle": 10, "ScanOptions": "FS",
    "SeriesDescription": "t1 dyn", "AcquisitionDate": "20200101",
}  # fmt: skip
ACCEPT, REFUSE = "accept", "refuse"
SAGITTAL = list(phantoms.SAGITTAL)


@dataclass(frozen=True)
class Protocol:
    """A study and its verdict.

    `phases` are the volumes (numbers of `volume`, or number and seed; None: any) that must be
    imported in this order, empty for a refusal; `or_refused` where a refusal is as right. `use` are
    the selectors that decide.
    `said` must stand in the refusal or among the warnings.
    """

    name: str
    write: object
    phases: tuple = ()
    or_refused: bool = False
    said: str = ""
    use: tuple = ()
    times: tuple | None = TIMES


@cache
def volume(k, shape=SHAPE, seed=0):
    """Return the magnitude of phase `k` (-1: the same anatomy in another noise, no contrast)."""
    z, y, x = np.meshgrid(*(np.arange(n, dtype=float) for n in shape), indexing="ij")
    body = (((y - 22) / 18) ** 2 + ((x - 24) / 22) ** 2 < 1) & (y > 4)
    fat = 300 + 40 * np.sin(x / 5) * np.cos(y / 4 + z)
    gland = ((y - 15) / 7) ** 2 + ((np.abs(x - 24) - 10) / 6) ** 2 < 1
    heart = ((y - 30) / 6) ** 2 + ((x - 27) / 8) ** 2 < 1
    tumour = ((y - 14) ** 2 + (x - 14) ** 2 + (2 * (z - 2)) ** 2) < 12
    values = np.where(body, fat, 0.0)
    values[body & gland] = 420
    values[body & heart] = 260
    if k > 0:
        values[body & gland] *= 1.10 + 0.03 * k
        values[body & heart] *= 2.4 - 0.08 * k
        values[body & tumour] = 420 * (2.1 - 0.05 * k)
    rng = np.random.default_rng([seed, k + 1])
    made = np.clip(values + rng.normal(0, 4, shape), 0, None).round().astype(np.int16)
    made.flags.writeable = False
    return made


def clock(seconds, start=10 * 3600):
    """Return a DICOM time of day."""
    whole = start + seconds
    return f"{int(whole // 3600) % 24:02d}{int(whole % 3600 // 60):02d}{whole % 60:09.6f}"


def series(folder, number, k, values, seconds=None, **elements):
    """Write one volume as a part of series `number`."""
    timed = {} if seconds is None else {"AcquisitionTime": clock(seconds)}
    phantoms.write_phase(
        folder / f"s{number}", k, values=values, prefix=f"IM{number}",
        **{**DYN, "SeriesNumber": number, "SeriesInstanceUID": f"2.25.{1000 + number}",
           "ContentTime": clock((seconds or 0) + 5), "ContentDate": "20200101", **timed,
           "InstanceNumber": lambda phase, z: len(values) * phase + z + 1, **elements},
    )  # fmt: skip


def dynamic(folder, number=5, values=volume, times=TIMES, *, first=0, index=0, **elements):
    """Write the phases of `times` from `first` on into one series, timed by AcquisitionTime.

    `values` gives the volume of each phase; `index` is added to its number, to write a second set
    into a series. None as a time writes none.
    """
    for k, at in enumerate(times):
        if k >= first:
            series(folder, number, index + k, values(k), at, **elements)


def per_phase(folder, numbers=(5, 6, 7, 8, 9, 10), values=volume, times=TIMES, **elements):
    """Write a series for each phase."""
    for k, (number, at) in enumerate(zip(numbers, times, strict=True)):
        series(folder, number, k, values(k), at, **elements)


def noise(k, shape=SHAPE):
    """Return values as of a phase image."""
    return np.random.default_rng([5, k]).integers(0, 4096, shape).astype(np.int16)


def plain(k):
    """Return the anatomy without contrast, another noise for each `k`."""
    return volume(-1, seed=k)


def moved(k):
    """Return phase `k` moved by one voxel."""
    return np.roll(volume(k), 1, 2)


def scaled(factor):
    """Return what multiplies a phase."""
    return lambda k: (volume(k) * factor).astype(np.int16)


def later(start):
    """Return ContentTime as of images that were computed after the exam."""
    return lambda k, _: clock(start + k)


def with_private(group, creator, *elements):
    """Return what adds a private block of (offset, VR, value) to an image."""

    def then(image):
        block = image.private_block(group, creator, create=True)
        for element in elements:
            block.add_new(*element)

    return lambda *_: then


# ---- one dynamic, told in many ways


def by_temporal_position(folder):
    dynamic(folder, times=(0,) * 6, TemporalPositionIdentifier=lambda k, _: k + 1,
            NumberOfTemporalPositions=6, TriggerTime=lambda k, _: 75_000.0 * k)  # fmt: skip


def by_trigger_time(folder):
    dynamic(folder, times=(0,) * 6, TriggerTime=lambda k, _: 75_000.0 * k, ContentTime=clock(900))


def by_instance_number(folder):
    dynamic(folder, times=(0,) * 6, ContentTime=clock(900))


def pre_and_dynamic(folder, pre=4):
    series(folder, pre, 0, volume(0), 0)
    dynamic(folder, 5, first=1)


def ge_pre_and_dynamic(folder, pre=4):
    """Each series with one AcquisitionTime; TriggerTime starts anew with each."""
    series(folder, pre, 0, volume(0), 0, TriggerTime=0.0, ContentTime=clock(900))
    dynamic(folder, times=(75,) * 6, first=1, ContentTime=clock(900),
            TriggerTime=lambda k, _: 75_000.0 * (k - 1))  # fmt: skip


def over_midnight(folder):
    for k, at in enumerate(TIMES):
        late = 24 * 3600 - 100 + at
        day = "20200102" if late >= 24 * 3600 else "20200101"
        series(folder, 5, k, volume(k), AcquisitionTime=clock(late % 86400, 0),
               AcquisitionDate=day, ContentTime=clock(late % 86400, 0),
               ContentDate=day)  # fmt: skip


def enhanced(folder):
    volumes = np.stack([*map(volume, range(6))])
    times = [f"20200101{clock(at)}" for at in TIMES]
    phantoms.write_enhanced(folder / "dyn.dcm", volumes, times, SeriesNumber=5)


def enhanced_with_phase_images(folder):
    """Magnitude and phase images as frames of one file, of one time each."""
    volumes = np.stack([*map(volume, range(6)), *map(noise, range(6))])
    times = [f"20200101{clock(at)}" for at in TIMES] * 2
    phantoms.write_enhanced(
        folder / "dyn.dcm", volumes, times, SeriesNumber=5, ComplexImageComponent="MIXED",
        components=["MAGNITUDE"] * 6 + ["PHASE"] * 6,
    )  # fmt: skip


def table_moved(folder):
    def moved(phase, z):
        return [-10.0, -20.0 + 0.09 * (phase % 2), 30.0 + 2.0 * z + 0.09 * (phase % 3 == 1)]

    dynamic(folder, ImagePositionPatient=moved)


def table_moved_between_series(folder):
    per_phase(
        folder,
        ImagePositionPatient=lambda phase, z: [-10.0, -20 + 0.09 * (phase % 2), 30 + 2.0 * z],
    )


# ---- copies, subtractions and maps beside it


def moco(folder):
    dynamic(folder)
    dynamic(folder, 20, moved, ContentTime=later(600),
            ImageType=["DERIVED", "PRIMARY", "M", "ND", "MOCO"])  # fmt: skip


def moco_told_by_siemens_xa(folder):
    def then(image):
        block = image.private_block(0x21, "SIEMENS MR SDI 02", create=True)
        block.private_creator_offset = 0
        image.add_new((0x0021, 0x0011), "LO", "SIEMENS MR SDI 02")
        image.add_new((0x0021, 0x1175), "CS", ["ORIGINAL", "PRIMARY", "M", "MOCO"])

    dynamic(folder)
    dynamic(folder, 20, moved, ContentTime=later(600), then=lambda *_: then)


def moco_without_a_word(folder):
    dynamic(folder)
    dynamic(folder, 20, moved, ContentTime=later(600),
            TemporalPositionIdentifier=lambda k, _: k + 7)  # fmt: skip


def moco_alone(folder):
    dynamic(folder, ImageType=["DERIVED", "PRIMARY", "M", "ND", "MOCO"])


def filtered(folder):
    dynamic(folder)
    dynamic(folder, 21, scaled(1.1), ContentTime=later(600),
            ImageType=["DERIVED", "PRIMARY", "M", "FILTERED"])  # fmt: skip


def norm_beside_nd(folder):
    dynamic(folder, ImageType=["ORIGINAL", "PRIMARY", "M", "ND"])
    dynamic(folder, 22, scaled(1.2), ImageType=["ORIGINAL", "PRIMARY", "M", "NORM", "DIS2D"])


def norm_in_one_series(folder):
    dynamic(folder, ImageType=["ORIGINAL", "PRIMARY", "M", "ND"])
    dynamic(folder, 5, scaled(1.2), index=6, ImageType=["ORIGINAL", "PRIMARY", "M", "NORM"])


def sent_twice(folder):
    dynamic(folder)
    dynamic(folder, 30)


def sent_twice_into_one_series(folder):
    dynamic(folder)
    dynamic(folder, index=6)


def one_phase_twice_in_one_series(folder):
    dynamic(folder)
    series(folder, 5, 6, volume(2, seed=1), TIMES[2])


def _subtractions(folder, name, seconds=lambda at: at, **elements):
    dynamic(folder)
    for k, at in enumerate(TIMES):
        if k:
            difference = np.clip(volume(k) - volume(0), 0, None).astype(np.int16)
            series(folder, 30 + k, k, difference, seconds(at), ContentTime=clock(700 + k),
                   SeriesDescription=name(k), **elements)  # fmt: skip


def subtractions_by_number(folder):
    _subtractions(folder, lambda k: f"dyn S{k + 1}-S1")


def subtractions_in_french(folder):
    _subtractions(folder, lambda k: f"soustraction {k}")


def subtractions_in_spanish(folder):
    _subtractions(folder, lambda k: f"resta {k}")


def subtractions_of_philips(folder):
    _subtractions(folder, lambda k: "dSub_eTHRIVE", TemporalPositionIdentifier=lambda k, _: k)


def subtractions_of_ge(folder):
    _subtractions(folder, lambda k: f"({k}/2/3)-(4/5/6)")


def subtractions_without_a_word(folder):
    _subtractions(folder, lambda k: "t1 dyn")


def subtractions_with_times_of_their_own(folder):
    _subtractions(folder, lambda k: "t1 dyn", lambda at: at + 700)


def signed_subtractions_in_the_series(folder):
    dynamic(folder)
    dynamic(folder, 5, lambda k: volume(k) - volume(0), first=1, index=5)


def subtractions_only(folder):
    dynamic(folder, 5, lambda k: volume(k) - volume(0), first=1, SeriesDescription="sub")


def with_phase_images(folder):
    dynamic(folder, ImageType=["ORIGINAL", "PRIMARY", "M", "ND"])
    dynamic(folder, 6, noise, ImageType=["ORIGINAL", "PRIMARY", "P", "ND"])


def phase_images_of_ge(folder):
    dynamic(folder)
    dynamic(folder, 5, noise, index=6, then=with_private(0x43, "GEMS_PARM_01", (0x2F, "SS", 1)))


def ge_fat_and_water(folder):
    dynamic(folder, SeriesDescription="WATER: VIBRANT-Flex")
    dynamic(folder, 500, plain, SeriesDescription="FAT: VIBRANT-Flex")


def mdixon(folder):
    """Water and fat of each dynamic in one series, as Philips writes them."""
    for index, name, values in ((0, "W", volume), (6, "F", plain)):
        dynamic(folder, 5, values, index=index,
                ImageType=["ORIGINAL", "PRIMARY", name, name, "DERIVED"])  # fmt: skip


def siemens_dixon(folder):
    for number, values, end in ((5, volume, "W"), (6, plain, "F"), (7, volume, "in")):
        dynamic(folder, number, values, SeriesDescription=f"t1_vibe_dixon_{end}",
                ImageType=["ORIGINAL", "PRIMARY", "M", "DIXON"])  # fmt: skip


def in_phase_alone(folder):
    dynamic(folder, ImageType=["ORIGINAL", "PRIMARY", "M", "IN_PHASE"])
    dynamic(folder, 6, plain, ImageType=["ORIGINAL", "PRIMARY", "M", "OPP_PHASE"])


def fat_alone(folder):
    dynamic(folder, ImageType=["ORIGINAL", "PRIMARY", "M", "FAT"])


def maps(folder):
    dynamic(folder)
    for at, name in enumerate(("WASH-IN", "PEI", "TTP")):
        series(folder, 40 + at, 0, volume(at), TIMES[at], SeriesDescription=f"dyn_{name}",
               ImageType=["DERIVED", "SECONDARY", "OTHER"])  # fmt: skip


def maps_of_ispy(folder):
    dynamic(folder)
    for at, name in enumerate(("SER", "PE1")):
        series(folder, 31000 + at, 0, volume(at), 0, SeriesDescription=f"Dynamic-3dfgre: {name}",
               ImageType=["DERIVED", "PRIMARY", "DCE", name])  # fmt: skip


def maps_without_a_word(folder):
    """A wash-in map of the place, with the time of a phase and no word."""
    dynamic(folder)
    rise = (volume(1) - volume(0)) * 100 // np.maximum(volume(0), 20)
    series(folder, 40, 0, rise.astype(np.int16), TIMES[1])


def projections(folder):
    dynamic(folder)
    series(folder, 50, 0, volume(2), 150, ImageType=["DERIVED", "SECONDARY", "MIP_TRA"])
    series(folder, 51, 0, volume(2), 150, SeriesDescription="mpr cor",
           ImageOrientationPatient=[1, 0, 0, 0, 0, -1])  # fmt: skip


# ---- other sequences


DIFFUSION = {"ScanningSequence": "EP", "MRAcquisitionType": "2D", "RepetitionTime": 6000,
             "EchoTime": 61, "FlipAngle": 90}  # fmt: skip


def dti(folder, number=12):
    dynamic(folder)
    only_dti(folder, number)


def only_dti(folder, number=12):
    dynamic(folder, number, plain, range(900, 1020, 10), **DIFFUSION,
            SeriesDescription="ep2d_dti", DiffusionBValue=800.0)  # fmt: skip


def diffusion_of_ge_without_a_word(folder):
    dynamic(folder)
    then = with_private(0x43, "GEMS_PARM_01", (0x39, "IS", [1000000600, 8, 0, 7]))
    for number in (12, 13):
        dynamic(folder, number, plain, range(900, 940, 10), **DIFFUSION,
                SeriesDescription="ax", then=then)  # fmt: skip


PLANAR = {**DIFFUSION, "RepetitionTime": 2000, "EchoTime": 30, "FlipAngle": 10}


def fmri(folder):
    dynamic(folder)
    dynamic(folder, 14, plain, range(900, 940, 2), **PLANAR, SeriesDescription="bold")


def only_fmri(folder):
    dynamic(folder, 14, plain, range(900, 1050, 30), **PLANAR, SeriesDescription="rest")


def t2_echo_train(folder):
    dynamic(folder)
    dynamic(folder, 3, plain, range(-900, -660, 30), ScanningSequence="RM", EchoTrainLength=8,
            RepetitionTime=5500, EchoTime=12, FlipAngle=90, SeriesDescription="sag")  # fmt: skip


def flip_angles(folder):
    for at, angle in enumerate((2, 5, 10)):
        series(folder, 2 + at, at, volume(-1, seed=at), 20 * at - 600, FlipAngle=angle,
               SeriesDescription=f"fl3d {angle}")  # fmt: skip
    dynamic(folder, 8)


def field_map(folder):
    dynamic(folder)
    dynamic(folder, 17, plain, range(900, 1110, 30), RepetitionTime=400, EchoTime=5,
            SeriesDescription="gre_field_mapping")  # fmt: skip


def localiser(folder):
    series(folder, 1, 0, volume(-1)[:3], -900, MRAcquisitionType="2D", RepetitionTime=8,
           SeriesDescription="localizer",
           ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])  # fmt: skip
    dynamic(folder)


def screen_capture(folder):
    dynamic(folder)
    for z in range(3):
        phantoms.write_image(
            folder / "cap" / f"{z}.dcm", np.zeros((8, 8), np.uint8), SeriesNumber=99,
            SeriesInstanceUID="2.25.99", SOPClassUID="1.2.840.10008.5.1.4.1.1.7",
        )  # fmt: skip


def twist(folder, **elements):
    """Write a pre, an ultrafast series while contrast comes, and four phases after it."""
    series(folder, 4, 0, volume(0), 0)
    dynamic(folder, 5, lambda k: volume(min(k // 5, 3), seed=k), range(100, 200, 4), **elements)
    dynamic(folder, 6, lambda k: volume(k + 1), (220, 295, 370, 445))


def twist_with_its_own_parameters(folder):
    twist(folder, EchoTime=0.9, RepetitionTime=2.5, FlipAngle=20, SeriesDescription="twist")


# ---- runs


def pre_twice(folder):
    series(folder, 4, 0, volume(0, seed=1), -600)
    dynamic(folder)


def aborted_and_repeated(folder):
    dynamic(folder, 4, lambda k: volume(0, seed=k + 2), (-900, -825, -750))
    dynamic(folder)


def second_injection(folder):
    dynamic(folder)
    dynamic(folder, 9, lambda k: volume(k, seed=3), [3000 + at for at in TIMES])


def two_contrast_times(folder):
    dynamic(folder, ContrastBolusStartTime=lambda phase, _: "100030" if phase < 3 else "100400")


def phase_missing(folder):
    for k, at in enumerate(TIMES):
        if k != 3:
            series(folder, 5, k, volume(k), at)


# ---- what must be refused


def two_patients(folder):
    dynamic(folder, PatientID=lambda k, _: "A1" if k < 3 else "B2")


def two_birth_dates(folder):
    dynamic(folder, PatientID="A1",
            PatientBirthDate=lambda k, _: "19700101" if k < 3 else "19800101")  # fmt: skip


def slice_missing(folder):
    dynamic(folder)
    next((folder / "s5").glob("IM5_3_*")).unlink()


def side_of(folder, number, x0, seed, **elements):
    """Write a sagittal dynamic whose first slice lies at `x0` mm, the others to its right."""
    dynamic(folder, number, lambda k: volume(k % 6, seed=seed), ImageOrientationPatient=SAGITTAL,
            ImagePositionPatient=lambda _, z: [x0 - 2.0 * z, -20.0, 30.0], **elements)  # fmt: skip


def left_and_right(folder, **elements):
    side_of(folder, 5, 40.0, 5, **elements)
    side_of(folder, 6, -60.0, 6, **elements)


def left_and_right_in_one_series(folder, **elements):
    side_of(folder, 5, 40.0, 5, **elements)
    side_of(folder, 5, -60.0, 6, index=6, **elements)


def no_times(folder):
    dynamic(folder, times=(None,) * 6, ContentTime=None)


def wiped_times(folder):
    """One series for each phase, and an archive set all times to midnight."""
    per_phase(folder, times=(None,) * 6, AcquisitionTime="000000", ContentTime="000000")


def two_dynamics(folder):
    dynamic(folder)
    dynamic(folder, 9, lambda k: volume(k, seed=4), [2000 + at for at in TIMES], FlipAngle=25)


def unproven_repeats(folder):
    """Six volumes of one time without contrast: nothing says that they are phases."""
    dynamic(folder, 5, plain, (0,) * 6, ContentTime=clock(900))


def changed_matrix(folder):
    series(folder, 4, 0, volume(0, (4, 32, 48)), 0)
    dynamic(folder, 5, first=1)


def post_only_with_another_pre(folder):
    """The pre was taken with another TR, so it is no part of the dynamic's sequence."""
    series(folder, 4, 0, volume(0), 0, RepetitionTime=6.0)
    dynamic(folder, 5, lambda k: volume(5, seed=k), first=1)


def copies_without_any_time(folder):
    for number, values in ((5, volume), (20, moved)):
        dynamic(folder, number, values, (None,) * 6, ContentTime=None)


def reversed_times(folder):
    dynamic(folder, 5, lambda k: volume(5 - k))


def map_without_any_time(folder):
    dynamic(folder)
    series(folder, 9, 0, volume(3, seed=7))


def forty_phases(folder):
    dynamic(folder, 5, lambda k: volume(min(k, 5), seed=k), range(0, 1200, 30))


def one_phase(folder):
    series(folder, 5, 0, volume(0), 0)


def late_phase(folder):
    dynamic(folder)
    series(folder, 9, 6, volume(5, seed=8), 375 + 600)


def turned_in_mid_series(folder):
    for k, at in enumerate(TIMES):
        turn = SAGITTAL if k == 3 else list(phantoms.AXIAL)
        series(folder, 5, k, volume(k), at, ImageOrientationPatient=turn)


def mixed_matrix_sizes(folder):
    dynamic(folder, 5, lambda k: volume(k, (4, 32, 48)) if k == 3 else volume(k))


def post_only(folder):
    """The pre-contrast series is not in the folder; tissue goes on to enhance slowly."""
    for k, at in enumerate(TIMES[1:]):
        values = volume(1, seed=k).astype(float)
        values[:, 8:14, 8:16] *= 1 + 0.06 * k
        series(folder, 5, k, values.round().astype(np.int16), at)


def another_visit(folder):
    """A second exam of the same patient under the same study, without contrast times."""
    dynamic(folder)
    dynamic(folder, 6, lambda k: volume(k, seed=6), AcquisitionDate="20200108")


P = tuple(range(6))
PROTOCOLS = (
    Protocol("one series", dynamic, P),
    Protocol("one series per phase", per_phase, P),
    Protocol("temporal position", by_temporal_position, P),
    Protocol("trigger time", by_trigger_time, P),
    Protocol("instance number only", by_instance_number, P, times=None),
    Protocol("pre and dynamic", pre_and_dynamic, P),
    Protocol("pre numbered last", lambda folder: pre_and_dynamic(folder, 9), P),
    Protocol("GE pre and dynamic", ge_pre_and_dynamic, P),
    Protocol("GE pre numbered last", lambda folder: ge_pre_and_dynamic(folder, 9), P),
    Protocol("series reversed", lambda folder: per_phase(folder, (10, 9, 8, 7, 6, 5)), P),
    Protocol("over midnight", over_midnight, P),
    Protocol("enhanced", enhanced, P),
    Protocol("enhanced with phase images", enhanced_with_phase_images, P),
    Protocol("table moved", table_moved, P),
    Protocol("table moved between series", table_moved_between_series, P),
    Protocol("moco", moco, P),
    Protocol("moco by ImageTypeText", moco_told_by_siemens_xa, P),
    Protocol("moco without a word", moco_without_a_word, said="same AcquisitionTime"),
    Protocol("moco alone", moco_alone, P, said="motion-corrected"),
    Protocol("filtered", filtered, P),
    Protocol("NORM beside ND", norm_beside_nd, P, or_refused=True),
    Protocol("NORM in one series", norm_in_one_series, P, or_refused=True),
    Protocol("sent twice", sent_twice, P),
    Protocol("sent twice into one series", sent_twice_into_one_series, P, or_refused=True),
    Protocol("one phase twice", one_phase_twice_in_one_series),
    Protocol("subtractions S2-S1", subtractions_by_number, P),
    Protocol("soustraction", subtractions_in_french, P),
    Protocol("resta", subtractions_in_spanish, P),
    Protocol("subtractions of Philips", subtractions_of_philips, P),
    Protocol("subtractions of GE", subtractions_of_ge, P),
    Protocol("subtractions without a word", subtractions_without_a_word, P),
    Protocol("subtractions later", subtractions_with_times_of_their_own, P),
    Protocol("signed subtractions inside", signed_subtractions_in_the_series, P,
             said="(a subtraction)"),
    Protocol("subtractions only", subtractions_only),
    Protocol("phase images", with_phase_images, P),
    Protocol("phase images of GE", phase_images_of_ge, P),
    Protocol("GE fat and water", ge_fat_and_water, P),
    Protocol("mDIXON", mdixon, P),
    Protocol("Siemens Dixon", siemens_dixon, P),
    Protocol("in-phase alone", in_phase_alone, P),
    Protocol("fat alone", fat_alone),
    Protocol("maps", maps, P),
    Protocol("maps of I-SPY", maps_of_ispy, P),
    Protocol("maps without a word", maps_without_a_word, or_refused=True),
    Protocol("projections", projections, P),
    Protocol("DTI", dti, P),
    Protocol("DTI numbered first", lambda folder: dti(folder, 2), P),
    Protocol("diffusion of GE", diffusion_of_ge_without_a_word, P),
    Protocol("DTI only", only_dti, said="choose the folder of the DCE series"),
    Protocol("fMRI", fmri, P),
    Protocol("fMRI only", only_fmri, said="--use series"),
    Protocol("T2", t2_echo_train, P),
    Protocol("flip angles", flip_angles, P, said="--vfa-angles 2,5 --vfa-tr 4.1"),
    Protocol("field map", field_map, P),
    Protocol("localiser", localiser, P),
    Protocol("screen capture", screen_capture, P),
    Protocol("TWIST", twist_with_its_own_parameters, (0, 1, 2, 3, 4), or_refused=True,
             times=(0, 220, 295, 370, 445)),
    Protocol("TWIST like the dynamic", twist),
    Protocol("pre twice", pre_twice, P),
    Protocol("aborted and repeated", aborted_and_repeated, P),
    Protocol("second injection", second_injection, said="one injection"),
    Protocol("two contrast times", two_contrast_times, said="one injection"),
    Protocol("phase missing", phase_missing, (0, 1, 2, 4, 5), said="150 s between",
             times=(0, 75, 150, 300, 375)),
    Protocol("two patients", two_patients, said="one patient"),
    Protocol("two birth dates", two_birth_dates, said="one patient"),
    Protocol("slice missing", slice_missing, said="a slice is missing"),
    Protocol("left and right", left_and_right, said="side=left"),
    Protocol("left and right in one series", left_and_right_in_one_series, said="side=left"),
    Protocol("no times", no_times, P, times=None),
    Protocol("wiped times", wiped_times, said="--clock"),
    Protocol("two dynamics", two_dynamics, said="--use"),
    Protocol("unproven repeats", unproven_repeats, said="--use"),
    Protocol("changed matrix", changed_matrix, said="the same size and position"),
    Protocol("copies without any time", copies_without_any_time, said="--leave-out"),
    Protocol("reversed times", reversed_times, said="arrive and stay"),
    Protocol("map without any time", map_without_any_time, said="--leave-out"),
    Protocol("forty phases", forty_phases, tuple((min(k, 5), k) for k in range(40)),
             times=tuple(range(0, 1200, 30))),
    Protocol("one phase", one_phase, (0,), times=(0,), said="only one phase"),
    Protocol("late phase", late_phase, (*P, (5, 8)), times=(*TIMES, 975), said="600 s between"),
    Protocol("turned in mid series", turned_in_mid_series, said="one orientation"),
    Protocol("mixed matrix sizes", mixed_matrix_sizes, said="size (rows, columns)"),
    Protocol("post only", post_only, (None,) * 5, times=(0, 75, 150, 225, 300),
             said="no contrast arrives between any two phases"),
    Protocol("another visit", another_visit, said="one injection"),
    Protocol("post with another pre", post_only_with_another_pre, said="same size and position"),
)  # fmt: skip
