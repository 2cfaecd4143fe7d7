"""Studies that would fool an import: what scanners, post-processing and archives do to a dynamic.

`HOSTILE` is a list of protocols as in `dicom_protocols`: most of them lure an import into phases
that are none, or out of order, and must be refused with the way out, or accepted without them.
"""

import importlib.util
from pathlib import Path

import numpy as np
from scipy import ndimage

_SPEC = importlib.util.spec_from_file_location(
    "dicom_protocols", Path(__file__).parent / "dicom_protocols.py"
)
protocols = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(protocols)

phantoms, Protocol, P = protocols.phantoms, protocols.Protocol, protocols.P
SHAPE, TIMES = protocols.SHAPE, protocols.TIMES
volume, plain, noise = protocols.volume, protocols.plain, protocols.noise
dynamic, per_phase, series = protocols.dynamic, protocols.per_phase, protocols.series
clock, later, with_private = protocols.clock, protocols.later, protocols.with_private
LATE = [at + 700 for at in TIMES]
CORONAL = [1, 0, 0, 0, 0, -1]


# ---- one dynamic, numbered and timed badly


def one_number_for_all_series(folder):
    """A series for each phase, of one number and description; image numbers start anew."""
    for k, at in enumerate(TIMES):
        series(folder / str(k), 5, k, volume(k), at, SeriesInstanceUID=f"2.25.{70 + k}",
               InstanceNumber=lambda _, z: z + 1)  # fmt: skip


def content_time_tells_phases(folder):
    dynamic(folder, times=(0,) * 6, ContentTime=lambda k, _: clock(75 * k + 20),
            InstanceNumber=lambda _, z: z + 1)  # fmt: skip


def reconstructed_in_a_second_each(folder):
    """One AcquisitionTime for all, ContentTime of the reconstruction: 1.2 s from phase to phase."""
    dynamic(folder, times=(0,) * 6, ContentTime=lambda k, _: clock(600 + 1.2 * k))


def content_time_paces_all(folder):
    """No AcquisitionTime; ContentTime at 25 s is what the reconstruction took, or the scan."""
    dynamic(folder, times=(None,) * 6, ContentTime=lambda k, _: clock(600 + 25 * k))


def content_time_too_fast_for_the_scan(folder):
    """ContentTime at 25 s, while 40 lines of 8 partitions and a TR of 900 ms take 288 s."""
    dynamic(folder, 5, lambda k: volume(k, (8, 40, 48)), (None,) * 6,
            ContentTime=lambda k, _: clock(600 + 25 * k), RepetitionTime=900.0)  # fmt: skip


def acquisition_time_of_storing(pace):
    """Return what writes AcquisitionTime as an archive got the images, minutes after ContentTime"""

    def write(folder):
        per_phase(folder, times=(None,) * 6,
                  AcquisitionTime=lambda k, _: clock(900 + pace * k),
                  ContentTime=lambda k, _: clock(TIMES[k] + 60))  # fmt: skip

    return write


def acquisition_time_behind_a_fast_content_time(folder):
    """ContentTime of a slow clock and a fast reconstruction: AcquisitionTime is the scan's."""
    dynamic(folder, times=TIMES, ContentTime=lambda k, _: clock(-200 + 25 * k))


def minutes_only(cut):
    def write(folder):
        dynamic(folder, times=(None,) * 6, AcquisitionTime=lambda k, _: cut(clock(70 * k)))

    return write


def two_phases_of_one_time(**elements):
    """Return what writes phases 2 and 3 with one AcquisitionTime, and other clocks that differ."""

    def write(folder):
        dynamic(folder, times=(0, 75, 150, 150, 300, 375), **elements)

    return write


def summer_time_begins(folder):
    """The clock goes on by an hour between phases 2 and 3, and the time zone says so."""
    dynamic(folder, times=(None,) * 6,
            AcquisitionTime=lambda k, _: clock(TIMES[k] + 3600 * (k > 2)),
            ContentTime=lambda k, _: clock(TIMES[k] + 5 + 3600 * (k > 2)),
            TimezoneOffsetFromUTC=lambda k, _: "+0200" if k > 2 else "+0100")  # fmt: skip


def over_midnight_without_dates(folder):
    late = [24 * 3600 - 100 + at for at in TIMES]
    dynamic(folder, times=(None,) * 6, AcquisitionDate=None, ContentDate=None,
            AcquisitionTime=lambda k, _: clock(late[k] % 86400, 0),
            ContentTime=lambda k, _: clock((late[k] + 9) % 86400, 0))  # fmt: skip


def over_midnight_with_the_date_of_the_study(folder):
    late = [24 * 3600 - 100 + at for at in TIMES]
    per_phase(folder, times=(None,) * 6, AcquisitionDate="20200101",
              AcquisitionTime=lambda k, _: clock(late[k] % 86400, 0),
              ContentTime=lambda k, _: clock((late[k] + 9) % 86400, 0))  # fmt: skip


def dates_moved_apart(folder):
    """De-identification moved the date of each series by a number of days of its own."""
    per_phase(folder, AcquisitionDate=lambda k, _: f"202001{(4, 11, 2, 30, 8, 21)[k]:02d}")


def hours_without_their_zero(folder):
    dynamic(folder, times=(None,) * 6, ContentTime=None,
            AcquisitionTime=lambda k, _: clock(TIMES[k], 9 * 3600).lstrip("0"))  # fmt: skip


def instance_numbers_reversed(folder):
    dynamic(folder, 5, lambda k: volume(5 - k), (0,) * 6, ContentTime=clock(900))


def canon_enhanced(folder):
    """All frames with TemporalPositionIndex 1; each with its time."""
    times = [f"20200101{clock(at)}" for at in TIMES]

    def frame(groups, _):
        groups.FrameContentSequence[0].TemporalPositionIndex = 1

    phantoms.write_enhanced(folder / "dyn.dcm", np.stack([*map(volume, range(6))]), times,
                            frame=frame, Manufacturer="CANON_MEC", SeriesNumber=5)  # fmt: skip


# ---- sent, copied, computed


def sent_again_with_new_uids(folder):
    dynamic(folder)
    dynamic(folder / "again", SeriesInstanceUID="2.25.77", SeriesNumber=5)


def last_phase_again_with_another_time(folder):
    """An archive's copy of a phase, with the time at which it was made."""
    dynamic(folder)
    series(folder, 9, 6, volume(5), 375 + 300)


def last_phase_scaled_with_another_time(folder):
    dynamic(folder)
    series(folder, 9, 6, (volume(5) * 1.25).astype(np.int16), 375 + 300)


def one_phase_for_another(folder):
    """An export wrote the pixels of phase 3 into phase 4 too."""
    dynamic(folder, 5, lambda k: volume(3 if k == 4 else k))


def copies_in_other_units(folder):
    """The same dynamic, rescaled to 4095, with the times of the original."""
    dynamic(folder)
    dynamic(folder, 20, lambda k: (volume(k) * 3.7).astype(np.int16), RescaleSlope=0.27)


def copies_with_doubled_slices(folder):
    def doubled(k):
        values = volume(k).astype(float)
        between = (values[1:] + values[:-1]) / 2
        out = np.empty((2 * len(values) - 1, *values.shape[1:]))
        out[::2], out[1::2] = values, between
        return out.round().astype(np.int16)

    dynamic(folder)
    dynamic(folder, 20, doubled, gap=1.0)


def doubled_slices_after_contrast(folder):
    """The pre is not interpolated, the phases after contrast are."""
    series(folder, 4, 0, volume(0), 0)
    dynamic(folder, 5, lambda k: np.repeat(volume(k), 2, 0)[1:], first=1, gap=1.0)


def subtractions_in(word):
    """Return what writes subtractions by a word, later, of phases that were moved before."""

    def write(folder):
        dynamic(folder)
        for k in range(1, 6):
            difference = np.clip(np.roll(volume(k), 1, 1) - volume(0, seed=3), 0, None)
            series(folder, 30 + k, k, difference.astype(np.int16), LATE[k],
                   SeriesDescription=f"{word} {k}", SpecificCharacterSet="ISO_IR 192")  # fmt: skip

    return write


def adc_of_the_same_geometry(folder):
    dynamic(folder)
    values = np.where(volume(0) > 50, 1500, 0) + volume(-1, seed=9)
    series(folder, 40, 0, values.astype(np.int16), 1200, SeriesDescription="dADC map",
           ScanningSequence="EP", RepetitionTime=6000, EchoTime=61)  # fmt: skip


def adc_without_a_word(folder):
    """A map that carries the dynamic's parameters and a time of its own."""
    dynamic(folder)
    values = np.where(volume(0) > 50, 2000 - volume(0), 0) + volume(-1, seed=9) // 8
    series(folder, 40, 0, values.astype(np.int16), 1200)


def thin_mips_as_derived(folder):
    """Sliding projections of the last phase, on its places, called derived and nothing else."""

    def sliding(k):
        values = volume(5)
        return np.maximum.reduce([np.roll(values, step, 0) for step in (-1, 0, 1)])

    dynamic(folder)
    dynamic(folder, 41, sliding, (1000,), ImageType=["DERIVED", "SECONDARY", "REFORMAT"])


def enhanced_and_classic(folder):
    """An archive keeps the enhanced file and the classic images that it made of it."""
    protocols.enhanced(folder)
    dynamic(folder, 50)


def channels(folder):
    """Images of each receive coil beside the combined ones."""
    dynamic(folder)
    for coil in range(3):
        values = [(volume(k) * (0.3 + 0.2 * coil)).astype(np.int16) for k in range(6)]
        dynamic(folder, 60 + coil, values.__getitem__, ReceiveCoilName=f"BL{coil}")


def channels_in_one_series(folder):
    for coil in range(3):
        values = [(volume(k) * (0.3 + 0.2 * coil)).astype(np.int16) for k in range(6)]
        dynamic(folder, 5, values.__getitem__, index=6 * coil, ReceiveCoilName=f"BL{coil}")


# ---- parts of one series, and frames of one file


def projections_in_three_planes_inside(folder):
    """The dynamic's own series holds projections of it, in other orientations, without a word."""
    dynamic(folder)
    for k, turn in enumerate((protocols.SAGITTAL, CORONAL)):
        series(folder, 5, 6 + k, volume(3), 900, ImageOrientationPatient=turn)


def localisers_inside(folder):
    dynamic(folder)
    for k, turn in enumerate((protocols.SAGITTAL, CORONAL)):
        series(folder, 5, 6 + k, plain(k)[:3], -900, ImageOrientationPatient=turn,
               ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])  # fmt: skip


def cine(folder):
    """Frames of one heart beat: TriggerTime counts milliseconds, and no contrast comes."""
    dynamic(folder, 5, plain, (0,) * 12, TriggerTime=lambda k, _: 40.0 * k,
            ContentTime=clock(900))  # fmt: skip


def two_triggers_of_each_phase(folder):
    """Each phase is taken at two moments of the heart beat: half of the images are one dynamic."""
    for index, delay in ((0, 0.0), (6, 350.0)):
        dynamic(folder, 5, lambda k, seed=index: volume(k, seed=seed), index=index,
                TriggerTime=delay)  # fmt: skip


def _frames(folder, kinds, frame, **elements):
    """Write magnitude phases and as many others into one enhanced file, of the same times."""
    volumes = np.stack([*map(volume, range(6)), *map(kinds, range(6))])
    times = [f"20200101{clock(at)}" for at in TIMES] * 2
    phantoms.write_enhanced(folder / "dyn.dcm", volumes, times, SeriesNumber=5, frame=frame,
                            **elements)  # fmt: skip


def philips_phase_frames(folder):
    """Philips tells phase images in a private element of the frame's private sequence alone."""

    def frame(groups, time):
        own = phantoms.item()
        block = own.private_block(0x2005, "Philips MR Imaging DD 001", create=True)
        block.add_new(0x11, "CS", "M" if time < 6 else "P")
        groups.private_block(0x2005, "Philips MR Imaging DD 005", create=True)
        groups.add_new(0x2005140F, "SQ", [own])

    _frames(folder, noise, frame, Manufacturer="Philips Medical Systems")


def philips_epi_frames(folder):
    """An echo-planar dynamic whose only sign is the private EPI factor of its frames."""

    def frame(groups, time):
        own = phantoms.item()
        block = own.private_block(0x2001, "Philips Imaging DD 001", create=True)
        block.add_new(0x13, "SL", 47)
        groups.private_block(0x2005, "Philips MR Imaging DD 005", create=True)
        groups.add_new(0x2005140F, "SQ", [own])

    times = [f"20200101{clock(at)}" for at in TIMES]
    phantoms.write_enhanced(folder / "dyn.dcm", np.stack([*map(volume, range(6))]), times,
                            frame=frame, SeriesNumber=5)  # fmt: skip


def philips_epi(folder):
    dynamic(folder, then=with_private(0x2001, "Philips Imaging DD 001", (0x13, "SL", 47)))


def philips_private_phase_images(folder):
    dynamic(folder)
    dynamic(folder, 5, noise, index=6,
            then=with_private(0x2005, "Philips MR Imaging DD 001", (0x11, "CS", "P")))  # fmt: skip


def philips_words_of_parts(folder):
    """Phase images told by a word of ImageType only, as in dicom2nifti's philips/anatomical/002."""
    kind = ["ORIGINAL", "PRIMARY"]
    dynamic(folder, ImageType=[*kind, "SW_M_FFE", "SW_M", "FFE"])
    dynamic(folder, 5, noise, index=6, ImageType=[*kind, "SW_P_FFE", "SW_P", "FFE"])


def private_as_unknown(folder):
    """An archive wrote private elements without their kind (UN): bytes, in the file's order."""
    dynamic(folder)
    phase = with_private(0x2005, "Philips MR Imaging DD 001", (0x11, "UN", b"P "))
    dynamic(folder, 5, noise, index=6, then=phase)
    dynamic(folder, 5, noise, index=12,
            then=with_private(0x43, "GEMS_PARM_01", (0x2F, "UN", b"\1\0")))  # fmt: skip
    b_value = with_private(0x43, "GEMS_PARM_01", (0x39, "UN", b"1000000600\\8\\0\\7"))
    dynamic(folder, 12, plain, LATE, ScanningSequence="EP", RepetitionTime=900, then=b_value)


def planar_as_unknown(folder):
    dynamic(folder, then=with_private(0x2001, "Philips Imaging DD 001", (0x13, "UN", b"\57\0\0\0")))


def siemens_frames(role):
    """Return what writes frames whose kind stands in Siemens' own sequence of each frame."""

    def write(folder):
        def frame(groups, time):
            own = phantoms.item()
            block = own.private_block(0x21, "SIEMENS MR SDI 02", create=True)
            block.private_creator_offset = 0
            own = phantoms.item()
            own.add_new(0x00210011, "LO", "SIEMENS MR SDI 02")
            words = ["ORIGINAL", "PRIMARY", "M", "ND"] if time < 6 else role
            own.add_new(0x00211175, "CS", words)
            groups.add_new(0x00210011, "LO", "SIEMENS MR SDI 02")
            groups.add_new(0x002111FE, "SQ", [own])

        _frames(folder, noise if "P" in role else protocols.moved, frame, Manufacturer="SIEMENS")

    return write


def siemens_epi_frames(folder):
    """An enhanced file whose sequence is told by Siemens' own name of it, in the frame's type."""

    def frame(groups, time):
        kind = phantoms.item(FrameType=["ORIGINAL", "PRIMARY", "M", "NONE"])
        kind.add_new(0x00210011, "LO", "SIEMENS MR SDI 02")
        kind.add_new(0x00211177, "LO", "*epfid2d1_64")
        groups.MRImageFrameTypeSequence = [kind]

    times = [f"20200101{clock(at)}" for at in TIMES]
    phantoms.write_enhanced(folder / "dyn.dcm", np.stack([*map(volume, range(6))]), times,
                            frame=frame, Manufacturer="SIEMENS", SeriesNumber=5)  # fmt: skip


def frames_of_type(*words):
    """Return what writes magnitudes and frames of another FrameType into one file."""

    def write(folder):
        def frame(groups, time):
            kind = ["ORIGINAL", "PRIMARY", "DYNAMIC", "NONE"] if time < 6 else list(words)
            groups.MRImageFrameTypeSequence = [phantoms.item(FrameType=kind)]

        _frames(folder, lambda k: volume(max(k, 1)) - volume(0), frame)

    return write


def mixed_frames_that_say_nothing(folder):
    """The file says that components are mixed; of half of its frames nothing says which they are"""

    def frame(groups, time):
        kind = phantoms.item(FrameType=["ORIGINAL", "PRIMARY", "DYNAMIC", "NONE"])
        if time < 6:
            kind.ComplexImageComponent = "MAGNITUDE"
        groups.MRImageFrameTypeSequence = [kind]

    _frames(folder, noise, frame, ComplexImageComponent="MIXED")


# ---- honest scans whose name is that of something else

SCAN = ["ORIGINAL", "PRIMARY", "M", "ND"]


def beside_a_dynamic_named(folder):
    """The dynamic's protocol is named for what is made of it; all else of the exam is there too."""
    per_phase(folder, SeriesDescription="t1_fl3d_tra_spair_sub", ImageType=SCAN)
    series(folder, 1, 0, plain(0)[:3], -900, SeriesDescription="localizer", ImageType=SCAN)
    series(folder, 2, 0, plain(1), -400, SeriesDescription="t2", RepetitionTime=5000, EchoTime=90,
           ScanningSequence="SE")  # fmt: skip
    for k, b in enumerate((0, 800)):
        series(folder, 3, k, plain(2 + k), -200 + k, SeriesDescription="ep2d_diff",
               ScanningSequence="EP", ImageType=["ORIGINAL", "PRIMARY", "DIFFUSION", "NONE"],
               DiffusionBValue=float(b))  # fmt: skip
    for k in range(1, 6):
        series(folder, 20 + k, k, volume(k) - volume(0), TIMES[k], SeriesDescription="t1_fl3d_SUB",
               ImageType=["DERIVED", "PRIMARY", "M", "ND", "SUB"])  # fmt: skip


def series_named(name):
    """Return what writes a dynamic of one series with a name."""
    return lambda folder: dynamic(folder, SeriesDescription=name, ImageType=SCAN)


# ---- one phase stored in another direction, and two echoes that only a number tells apart


def stored_from_behind(rows=False, columns=False, inside=False):
    """Return what writes phase 3 with rows or columns from behind, and says so in its place."""
    axes = np.reshape(phantoms.AXIAL, (2, 3)) * [[1 - 2 * columns], [1 - 2 * rows]]
    last = (
        (SHAPE[2] - 1) * phantoms.SPACING[1] * columns,
        (SHAPE[1] - 1) * phantoms.SPACING[0] * rows,
    )
    turned = slice(None, None, -1 if rows else 1), slice(None, None, -1 if columns else 1)

    def write(folder):
        for k, at in enumerate(TIMES):
            own = (
                {}
                if k != 3
                else {
                    "ImageOrientationPatient": axes.ravel().tolist(),
                    "ImagePositionPatient": lambda _, z: moved_corner(z, last),
                }
            )
            values = volume(k)[:, *turned] if k == 3 else volume(k)
            series(folder, 5 if inside else 5 + k, k, np.ascontiguousarray(values), at, **own)

    return write


def moved_corner(z, last):
    x, y, height = phantoms.place(z)
    return [x + last[0], y + last[1], height]


def two_echoes_without_times(folder):
    for echo in (1, 2):
        dynamic(folder, 5, lambda k, e=echo: (volume(k, seed=e) / e).astype(np.int16),
                [at + echo - 1 for at in TIMES], index=6 * (echo - 1), EchoNumbers=echo,
                EchoTime=None)  # fmt: skip


def four_parts_without_a_word(folder):
    """Water, fat, in and opposed phase of a Dixon sequence, of which no element tells which."""
    for number, share in ((5, 1.0), (6, 0.8), (7, 0.6), (8, 0.4)):
        dynamic(
            folder, number, lambda k, n=number, s=share: (volume(k, seed=n) * s).astype(np.int16)
        )


def echo_numbers_that_count_phases(folder):
    dynamic(folder, EchoNumbers=lambda k, _: k + 1, EchoTime=None)


def last_phase_without_a_sequence(folder):
    """An archive dropped what tells the sequence from the last phase."""
    per_phase(folder, **{
        name: lambda k, _, own=name: DYN_VALUES[own] if k < 5 else None for name in DYN_VALUES
    })  # fmt: skip


DYN_VALUES = {name: protocols.DYN[name] for name in (
    "ScanningSequence", "RepetitionTime", "EchoTime", "FlipAngle", "ScanOptions")}  # fmt: skip


# ---- other scans that resemble the dynamic


def test_bolus(folder):
    """One thick slice every second, while a little contrast comes."""
    dynamic(folder, 3, lambda k: volume(min(k // 10, 1), seed=k)[:1], range(-200, -160),
            MRAcquisitionType="2D", EchoTime=1.1, RepetitionTime=6, SliceThickness=10)  # fmt: skip
    dynamic(folder)


def delayed_axial_behind_sagittal(folder):
    protocols.side_of(folder, 5, 3.0, 0)
    series(folder, 9, 0, volume(5, seed=7), 700)


def delayed_with_finer_voxels(folder):
    dynamic(folder)
    series(folder, 9, 6, volume(5, (8, 80, 96)), 700, PixelSpacing=[0.25, 0.375], gap=1.0)


def another_field_of_view_midway(folder):
    for k, at in enumerate(TIMES):
        series(folder, 5 + k, k, volume(k), at, PixelSpacing=[0.5, 0.75] if k < 3 else [0.6, 0.9])


def another_echo_time_midway(folder):
    per_phase(folder, EchoTime=lambda k, _: 1.4 if k < 3 else 2.8)


def another_angle_untold(*lost, at=700):
    """Return what writes a scan of another angle beside the dynamic, which loses its elements."""

    def write(folder):
        dynamic(folder)
        values = np.where(volume(5) > 380, volume(5) * 0.84, volume(5) * 1.05)
        series(folder, 20 if at > 0 else 3, 7, values.astype(np.int16), at,
               **dict.fromkeys(lost))  # fmt: skip

    return write


def sequence_untold_in_all(folder):
    dynamic(folder, FlipAngle=None, RepetitionTime=None, EchoTime=None)


def fat_saturation_midway(folder):
    """Phases 3 to 5 do not say FS: another half of one dynamic, or another sequence."""
    per_phase(folder, ScanOptions=lambda k, _: "FS" if k < 3 else None)


def water_named_midway(folder):
    per_phase(folder, SeriesDescription=lambda k, _: "WATER: dyn" if k < 3 else "t1 dyn")


def pre_without_fat_saturation(folder):
    """Fat is bright in a T1 series before, which has the dynamic's parameters by its header."""
    bright = np.where((volume(0) > 150) & (volume(0) < 380), 1200, volume(0) // 2)
    series(folder, 4, 0, bright.astype(np.int16), -300)
    dynamic(folder)


def last_without_fat_saturation(folder):
    """The same after the dynamic: all fat rises."""
    dynamic(folder)
    bright = np.where((volume(0) > 150) & (volume(0) < 380), 1200, volume(5) // 2)
    series(folder, 9, 6, bright.astype(np.int16), 700)


def dixon_water_and_in_phase(folder):
    dynamic(folder, 5, SeriesDescription="t1_vibe_dixon_W")
    dynamic(folder, 6, lambda k: volume(k) + volume(-1, seed=k) // 2,
            SeriesDescription="t1_vibe_dixon_in")  # fmt: skip


def inversion_times(folder):
    """A Look-Locker series: one sequence, eight inversion times, the signal rises with them."""

    def recovered(k):
        return (volume(0, seed=k) * (0.2 + 0.1 * k)).astype(np.int16)

    dynamic(folder, 5, recovered, range(0, 160, 20), InversionTime=lambda k, _: 100.0 + 250 * k)


def magnetisation_transfer(folder):
    """Two volumes, with and without a saturation pulse: what is not saturated is brighter."""

    def saturated(k):
        return np.where(volume(0, seed=k) > 380, volume(0, seed=k) * (1 + k) // 2,
                        volume(0, seed=k)).astype(np.int16)  # fmt: skip

    dynamic(folder, 5, saturated, (0, 120),
            SequenceVariant=lambda k, _: ["SP", "MTC"] if k == 0 else ["SP"])  # fmt: skip


def half_of_the_slices_in_another_series(folder):
    for k, at in enumerate(TIMES):
        whole = volume(k, (8, 40, 48))
        series(folder, 5, k, whole[:4], at)
        series(folder, 6, k, whole[4:], at,
               ImagePositionPatient=lambda _, z: phantoms.place(z + 4))  # fmt: skip


def a_slice_less_in_one_series(folder):
    for k, at in enumerate(TIMES):
        series(folder, 5 + k, k, volume(k)[: 3 if k == 4 else 4], at)


def blank_phase(folder):
    dynamic(folder, 5, lambda k: volume(k) * (k != 3))


def failed_phase(folder):
    """One phase is noise: the radio frequency was off."""
    dynamic(folder, 5, lambda k: noise(k) // 400 if k == 3 else volume(k))


def pre_of_another_day(folder):
    """The scan before contrast was taken a week before; its pixels were made with the others."""
    series(folder, 4, 0, volume(0), 0, AcquisitionDate="20191225")
    dynamic(folder, first=1)


def pre_of_the_morning(folder):
    series(folder, 4, 0, volume(0), -4 * 3600)
    dynamic(folder, first=1)


def moved_to_another_landmark(folder):
    """The patient was positioned anew after the pre: another frame of reference, the same places"""
    series(folder, 4, 0, volume(0), 0, FrameOfReferenceUID="2.25.501")
    dynamic(folder, first=1, FrameOfReferenceUID="2.25.502")


# ---- one dynamic with a seventh phase that is none


def with_seventh(make, **elements):
    """Return what writes the dynamic and, as its last phase, what `make` makes of phase 5."""

    def write(folder):
        dynamic(folder, **elements)
        series(folder, 5, 6, make(volume(5)), 450, **elements)

    return write


def fat_inside(folder):
    dynamic(folder)
    dynamic(folder, 5, lambda k: volume(k) // 5 + 20, index=6)


def without_slices(*places):
    """Return what writes a seventh phase, in which slices are missing."""

    def write(folder):
        with_seventh(lambda values: volume(5, seed=8))(folder)
        for z in places:
            (folder / "s5" / f"IM5_6_{z + 1:03d}.dcm").unlink()

    return write


def cut_seventh(folder):
    """An enhanced file for each phase, the last of which ends within its values."""
    for k, at in enumerate((*TIMES, 450)):
        phantoms.write_enhanced(folder / f"{k}.dcm", volume(k)[None], [
            f"20200101{clock(at)}"], SeriesNumber=5, SeriesInstanceUID="2.25.5",
            ImageComments="." * 9000, PatientComments="." * 9000)  # fmt: skip
    (folder / "6.dcm").write_bytes((folder / "6.dcm").read_bytes()[:-6000])


def some_sent_again(folder):
    """An archive sent two images of phase 2 once more, under other UIDs."""
    dynamic(folder)
    series(folder / "again", 5, 2, volume(2), 150, InstanceNumber=lambda _, z: 90 + z)
    for z in (1, 4):
        (folder / "again" / "s5" / f"IM5_2_{z:03d}.dcm").unlink()


def mixed(**taken):
    """Return what writes six phases, the last of which has slices of others: ``z0=2`` its first.

    A number above 9 is a phase and a slice of it: 41 is slice 1 of phase 4.
    """

    def values_of(k):
        values = volume(k).copy()
        if k == 5:
            for name, other in taken.items():
                z = int(name[1:])
                values[z] = volume(other // 10)[other % 10] if other > 9 else volume(other)[z]
        return values

    return lambda folder: dynamic(folder, 5, values_of)


def shifted_by_a_slice(folder):
    """The last phase begins one slice late, and its last slice is there twice."""
    dynamic(folder, 5, lambda k: volume(k)[[1, 2, 3, 3]] if k == 5 else volume(k))


def blank_ends(folder):
    """The slices at both ends were masked in all phases, but for one voxel."""

    def values_of(k):
        values = volume(k).copy()
        values[[0, 3]] = 0
        values[[0, 3], 20, 20] = 300
        return values

    dynamic(folder, 5, values_of)


def beyond_its_bits(at=5, factor=6, sign=0):
    """Return what writes a dynamic whose phase `at` has values above the 12 bits that it names."""

    def write(folder):
        for k, seconds in enumerate(TIMES):
            values = volume(k) * (1 if sign else 4)
            if k == at:
                values = np.where(volume(k) > 700, volume(k) * factor, values)
            series(folder, 5, k, values.astype(np.uint16), seconds, BitsStored=12, HighBit=11,
                   PixelRepresentation=sign)  # fmt: skip

    return write


def graphics_above_the_bits(folder):
    """Words of 12 bits with letters in bit 12, of which no header tells, and bit 15 always set."""

    y, x = np.meshgrid(*map(np.arange, SHAPE[1:]), indexing="ij")
    letters = (((x // 3 + y // 4) % 2 == 0) & (y > 30)).astype(np.uint16) << 12
    for k, at in enumerate(TIMES):
        series(folder, 5, k, volume(k).astype(np.uint16) | letters | 0x8000, at, BitsStored=12,
               HighBit=11)  # fmt: skip


# ---- contrast that is hard to see, on planes of usual size


LARGE = (3, 128, 144)


def breast(k, seed=0, *, parts=("gland", "heart", "tumour"), share=1.0, gain=0.0, shift=0):
    """Return a breast of which `parts` enhance after phase 0, by a `share` of the usual.

    `gain` is how much more signal there is at the right border, falling off to none at the left;
    `shift` moves the body by as many columns.
    """
    y, x = np.meshgrid(*(np.arange(n, dtype=float) for n in LARGE[1:]), indexing="ij")
    at = x - shift
    values = np.where(((y - 70) / 58) ** 2 + ((at - 72) / 66) ** 2 < 1, 300.0, 0.0)
    values += np.where(values > 0, 40 * np.sin(at / 15) * np.cos(y / 12), 0)
    for name, found, base, rise in (
        ("gland", ((y - 48) / 22) ** 2 + ((np.abs(at - 72) - 30) / 18) ** 2 < 1, 420, 0.2),
        ("heart", ((y - 96) / 18) ** 2 + ((at - 80) / 24) ** 2 < 1, 260, 1.4),
        ("tumour", (y - 44) ** 2 + (at - 42) ** 2 < 81, 420, 1.1),
    ):
        values[found] = base * (1 + share * rise * (k > 0 and name in parts))
    values *= 1 + gain * x / LARGE[2]
    noise = np.random.default_rng([seed, k]).normal(0, 4, LARGE)
    return np.clip(values + noise, 0, None).round().astype(np.int16)


def weak_dynamic(again=None, **looks):
    """Return what writes a dynamic of `looks`; after a first pre that differs so, if `again`."""

    def write(folder):
        if again is not None:
            series(folder, 4, 0, breast(0, seed=3, **looks), -300)
        dynamic(folder, 5, lambda k: breast(k, **{**looks, **(again or {})}))

    return write


def tumour_before_the_rest(folder):
    """Phase 1 is early: the tumour enhances, and the gland and the heart only from phase 2 on."""
    dynamic(folder, 5, lambda k: breast(k, **(ALONE if k < 2 else {})))


# ---- computed from the phases, without a word, on planes of usual size


def whole(k):
    """Return phase `k` of five with much noise for its size, in few planes."""
    return breast(k, seed=21)


def shifted(values, rows, columns):
    """Return values moved by a part of a voxel, as a registration resamples them."""
    return ndimage.shift(values.astype(float), (0, rows, columns), order=1, mode="nearest")


def made(compute, *, moment=300.0 + 600, inside=False, **elements):
    """Return what writes five phases and one volume made of them, as original as they are.

    `inside` writes it into the phases' own series.
    """

    def write(folder):
        five(folder)
        values = compute([*map(whole, range(5))])
        values = np.clip(np.round(values), -32000, 32000).astype(np.int16)
        series(folder, 5 if inside else 9, 5, values, moment, **elements)

    return write


def slabs_after_the_pre(folder):
    """The pre as it was scanned, and of the later phases sliding projections only."""
    series(folder, 5, 0, tall(0), 0)
    for k in range(1, 5):
        series(folder, 5 + k, k, ndimage.maximum_filter1d(tall(k), 4, axis=0), TIMES[k])


def tall(k):
    """Return a phase of twelve planes."""
    return np.concatenate([breast(k, seed=k + 50 * n) for n in range(4)])


def slab_of_a_phase(width, origin=0):
    """Return what writes five phases and a projection of one of them that slides over planes."""

    def write(folder):
        dynamic(folder, 5, tall, TIMES[:5])
        slab = ndimage.maximum_filter1d(tall(3), width, axis=0, origin=origin)
        series(folder, 9, 5, slab, 900)

    return write


def mean_between(folder):
    """Five phases and, at a time between the second and the third, the mean of these."""
    five(folder)
    between = ((whole(1).astype(float) + whole(2)) / 2).round().astype(np.int16)
    series(folder, 9, 5, between, (TIMES[1] + TIMES[2]) / 2)


def received(*gains):
    """Return what writes five phases, one series each, at these gains of the receiver."""

    def write(folder):
        for k, gain in enumerate(gains):
            series(folder, 5 + k, k, (whole(k) * gain).round().astype(np.int16), TIMES[k])

    return write


def five(folder):
    dynamic(folder, 5, whole, TIMES[:5])


def differences(move=(0.0, 0.0), offset=0.0, *, inside=False, gap=700.0, name="t1 dyn"):
    """Return what writes five phases and four differences to the first, of moved phases."""

    def write(folder):
        five(folder)
        for k in range(1, 5):
            after = shifted(whole(k), *move) if any(move) else whole(k).astype(float)
            values = np.clip(after - whole(0) + offset, 0, None).astype(np.int16)
            series(folder, 5 if inside else 30 + k, 5 + k, values, TIMES[k] + gap,
                   SeriesDescription=name)  # fmt: skip

    return write


def differences_as_frames(folder):
    """An enhanced file of the phases and, later and without a word, their differences."""
    volumes = [*map(whole, range(5))]
    volumes += [np.clip(whole(k) - whole(0), 0, None) for k in range(1, 5)]
    times = [*TIMES[:5], *(at + 700 for at in TIMES[1:5])]
    phantoms.write_enhanced(folder / "dyn.dcm", np.stack(volumes),
                            [f"20200101{clock(at)}" for at in times], SeriesNumber=5)  # fmt: skip


def differences_of_scans_that_are_not_there(folder):
    """The pre and four differences to it; the scans after contrast stayed on the scanner."""
    series(folder, 5, 0, whole(0), 0)
    for k in range(1, 5):
        values = np.clip(whole(k) - whole(0), 0, None)
        series(folder, 5, k, values, TIMES[k])


def moved_copies(folder):
    """Each phase again, ten minutes later, aligned to the first by a registration."""
    five(folder)
    for k in range(1, 5):
        values = shifted(whole(k), 1.3, -0.6).round().astype(np.int16)
        series(folder, 9, 5 + k, values, TIMES[k] + 600)


def view_sharing(folder):
    """Ultrafast phases that share the outer k-space with their neighbours, and so its noise."""
    spectra = [np.fft.fft2(breast(0 if k < 6 else 1, seed=40 + k)) for k in range(14)]
    y, x = (np.abs(np.fft.fftfreq(n)) for n in LARGE[1:])
    outer = np.maximum(y[:, None], x[None]) > 0.2

    def shared(k):
        mixed = np.where(outer, (spectra[max(k - 1, 0)] + spectra[k]) / 2, spectra[k])
        return np.abs(np.fft.ifft2(mixed)).round().astype(np.int16)

    dynamic(folder, 5, shared, range(0, 84, 6))


def second_injection_without_a_pre(folder, number=9):
    """Ten minutes after the first run contrast is given again, and only what follows is scanned."""
    five(folder)
    for k in range(1, 5):
        again = (breast(k, seed=31) + 0.8 * (whole(k) - whole(0).astype(float))).astype(np.int16)
        series(folder, number, 5 + k, again, TIMES[4] + 600 + TIMES[k])


def positions_lost(*lost):
    """Return what writes six phases but for some, and says in each image that there are six."""

    def write(folder):
        for k, at in enumerate(TIMES):
            if k not in lost:
                series(folder, 5, k, volume(k), at, TemporalPositionIdentifier=k + 1,
                       NumberOfTemporalPositions=6)  # fmt: skip

    return write


def positions_lost_in_series_of_one(folder):
    for k, at in enumerate(TIMES[:5]):
        series(folder, 5 + k, k, volume(k), at, NumberOfTemporalPositions=6)


def lost(*phases, slices=(), promised=True, **elements):
    """Return what writes six phases but for some, or each without some slices, still numbered.

    With `promised` each image says how many there were.
    """

    def write(folder):
        told = {"ImagesInAcquisition": 24} if promised else {}
        for k, at in enumerate(TIMES):
            if k not in phases:
                series(folder, 5, k, volume(k), at, **told, **elements)
        for path in sorted(folder.rglob("*_00[0-9].dcm")):
            if int(path.stem[-1]) in slices:
                path.unlink()

    return write


def numbers_that_jump(step):
    """Return what writes whole phases whose image numbers start anew at each multiple of `step`."""
    return lambda folder: dynamic(folder, InstanceNumber=lambda k, z: step * k + z + 1)


def shared_by_water_and_fat(folder):
    """Both are of one acquisition of 48 images; each has 24."""
    dynamic(folder, ImagesInAcquisition=48, SeriesDescription="t1 dyn water")
    dynamic(folder, 6, lambda k: volume(k)[:, ::-1], ImagesInAcquisition=48,
            SeriesDescription="t1 dyn fat")  # fmt: skip


FIVE = (None,) * 5
AT_FIVE = TIMES[:5]
LOST = (0, 75, 150, 300, 375)


ALONE = {"parts": ("tumour",)}
ANY = (None,) * 6


def asset_in_the_name(folder):
    dynamic(folder, SeriesDescription="Ax VIBRANT ASSET dyn")
    series(folder, 2, 0, plain(0), -100, SeriesDescription="ASSET Cal", RepetitionTime=150)


BAD_PHASES = (
    Protocol("a phase again in the series", with_seventh(lambda values: values)),
    Protocol("noise as last phase", with_seventh(lambda values: noise(6) // 200)),
    Protocol("zeros as last phase", with_seventh(lambda values: values * 0)),
    Protocol("last phase lacks a slice inside", without_slices(1)),
    Protocol("last phase lacks end slices", without_slices(3)),
    Protocol("fat in the series", fat_inside),
    Protocol("numberless series, one again",
             with_seventh(lambda values: values, SeriesNumber=None)),
    Protocol("last phase in another matrix", with_seventh(lambda values: values[:, 4:])),
    Protocol("last phase was cut", cut_seventh),
)  # fmt: skip
HOSTILE = (
    *BAD_PHASES,
    Protocol("one number for all series", one_number_for_all_series, P),
    Protocol("ContentTime tells phases", content_time_tells_phases, P,
             said="reconstruction times"),
    Protocol("reconstructed in a second each", reconstructed_in_a_second_each, P, times=None),
    Protocol("ContentTime paces all", content_time_paces_all, P, said="reconstruction times",
             times=tuple(range(0, 150, 25))),
    Protocol("ContentTime too fast for the scan", content_time_too_fast_for_the_scan, (None,) * 6,
             said="no element gives the times", times=None),
    Protocol("AcquisitionTime of storing", acquisition_time_of_storing(25), P,
             said="it is a storing time"),
    Protocol("AcquisitionTime of fast storing", acquisition_time_of_storing(3), P,
             said="it is a storing time"),
    Protocol("a fast ContentTime before AcquisitionTime",
             acquisition_time_behind_a_fast_content_time, P),
    Protocol("hours and minutes", minutes_only(lambda time: time[:4]), P,
             said="whole minutes only", times=tuple(range(0, 360, 60))),
    Protocol("seconds cut", minutes_only(lambda time: f"{time[:4]}00"), P,
             said="whole minutes only", times=tuple(range(0, 360, 60))),
    Protocol("two phases of one time, by ContentTime",
             two_phases_of_one_time(ContentTime=lambda k, _: clock(TIMES[k] + 60)),
             said="--clock ContentTime"),
    Protocol("two phases of one time, by position",
             two_phases_of_one_time(TemporalPositionIdentifier=lambda k, _: k + 1),
             said="--clock TemporalPositionIdentifier"),
    Protocol("summer time begins", summer_time_begins, P),
    Protocol("dates moved apart", dates_moved_apart, said="by AcquisitionTime alone"),
    Protocol("dates moved apart, named", dates_moved_apart, P, use=("series=5,6,7,8,9,10",),
             said="the time of day"),
    Protocol("hours without their zero", hours_without_their_zero, P, times=None,
             said="AcquisitionTime '90000.000000' is no time"),
    Protocol("over midnight without dates", over_midnight_without_dates, P, said="midnight"),
    Protocol("over midnight, one date", over_midnight_with_the_date_of_the_study, P,
             said="midnight"),
    Protocol("instance numbers reversed", instance_numbers_reversed, said="arrive and stay"),
    Protocol("Canon enhanced", canon_enhanced, P),
    Protocol("some sent again", some_sent_again, P, said="2 images of series 5 sent again"),
    Protocol("values beyond BitsStored", beyond_its_bits(), said="12 bits"),
    Protocol("values beyond signed BitsStored", beyond_its_bits(2, 3, 1), said="phase=2"),
    Protocol("a tumour beyond BitsStored", beyond_its_bits(5, 5.6), said="12 bits"),
    Protocol("graphics above the bits", graphics_above_the_bits, P),
    Protocol("images lost of a promise", lost(3), FIVE, times=LOST,
             said="24 images according to its header (ImagesInAcquisition), but 20 were found "
                  "(missing InstanceNumbers: 13 to 16)"),
    Protocol("end slices lost of a promise", lost(slices=(1,)), ANY,
             said="18 were found (missing InstanceNumbers: 4, 8, 12, 16, ...)"),
    Protocol("a phase lost of the numbers", lost(3, promised=False), FIVE,
             times=LOST,
             said="lack 1 whole phase of 4 slices (missing InstanceNumbers: 13 to 16)"),
    Protocol("a position lost of no promise",
             lost(3, promised=False, InstanceNumber=1,
                  TemporalPositionIdentifier=lambda k, _: k + 1), FIVE, times=LOST,
             said="(TemporalPositionIdentifier) lack 4"),
    Protocol("a slice of another phase", mixed(z3=2), said="phase=5"),
    Protocol("slices of two phases", mixed(z0=0, z3=4), said="phase=5"),
    Protocol("a slice twice in a phase", mixed(z3=52), said="of the same phase"),
    Protocol("a slice of another phase elsewhere", mixed(z3=41), said="of phase 4 (number"),
    Protocol("shifted by a slice", shifted_by_a_slice, said="phase=5"),
    Protocol("a slice of another phase, named", mixed(z3=2), ANY, use=("series=5",),
             said="of phase 2 (number"),
    Protocol("blank ends", blank_ends, ANY),
    Protocol("sent again with new UIDs", sent_again_with_new_uids, P),
    Protocol("a phase again, later", last_phase_again_with_another_time, said="same values"),
    Protocol("a phase scaled, later", last_phase_scaled_with_another_time, said="same values"),
    Protocol("one phase for another", one_phase_for_another, said="same values"),
    Protocol("copies in other units", copies_in_other_units, or_refused=True),
    Protocol("copies with doubled slices", copies_with_doubled_slices, said="--use"),
    Protocol("doubled slices after contrast", doubled_slices_after_contrast, said="the same size"),
    Protocol("subtractions in no language", subtractions_in("xyzzy"), or_refused=True),
    Protocol("subtractions in Polish", subtractions_in("różnica"), P),
    Protocol("subtractions in Chinese", subtractions_in("减影"), P),
    Protocol("ADC of the same geometry", adc_of_the_same_geometry, P),
    Protocol("ADC without a word", adc_without_a_word, said="--leave-out"),
    Protocol("thin MIPs as derived", thin_mips_as_derived, said="--use"),
    Protocol("enhanced and classic", enhanced_and_classic, P, or_refused=True),
    Protocol("channels", channels, or_refused=True),
    Protocol("channels in one series", channels_in_one_series),
    Protocol("projections inside", projections_in_three_planes_inside, said="orientation="),
    Protocol("localisers inside", localisers_inside, P),
    Protocol("cine", cine, said="--use"),
    Protocol("two triggers", two_triggers_of_each_phase, said="trigger="),
    Protocol("Philips phase frames", philips_phase_frames, P),
    Protocol("Philips EPI frames", philips_epi_frames, said="--use series"),
    Protocol("Philips EPI", philips_epi, said="--use series"),
    Protocol("Philips phase images", philips_private_phase_images, P),
    Protocol("Philips words of parts", philips_words_of_parts, P),
    Protocol("private elements as unknown", private_as_unknown, P),
    Protocol("Philips EPI as unknown", planar_as_unknown, said="--use series"),
    Protocol("Siemens phase frames", siemens_frames(["ORIGINAL", "PRIMARY", "P", "ND"]), P),
    Protocol("Siemens moco frames", siemens_frames(["ORIGINAL", "PRIMARY", "M", "MOCO"]), P),
    Protocol("Siemens EPI frames", siemens_epi_frames, said="--use series"),
    Protocol("frames of a subtraction",
             frames_of_type("DERIVED", "PRIMARY", "DYNAMIC", "SUBTRACTION"), P),
    Protocol("frames of a maximum", frames_of_type("DERIVED", "PRIMARY", "DYNAMIC", "MAXIMUM"), P),
    Protocol("frames of a deviation",
             frames_of_type("DERIVED", "PRIMARY", "DYNAMIC", "STD_DEVIATION"), P),
    Protocol("mixed frames that say nothing", mixed_frames_that_say_nothing, P),
    Protocol("test bolus", test_bolus, P, or_refused=True),
    Protocol("delayed axial", delayed_axial_behind_sagittal, P),
    Protocol("delayed with finer voxels", delayed_with_finer_voxels, said="--use"),
    Protocol("another field of view midway", another_field_of_view_midway, said="--use"),
    Protocol("another echo time midway", another_echo_time_midway, said="--use"),
    Protocol("a flip angle untold", another_angle_untold("FlipAngle"),
             said="(--leave-out series=20,"),
    Protocol("a repetition time untold", another_angle_untold("RepetitionTime"),
             said="(--leave-out series=20,"),
    Protocol("an echo time untold before", another_angle_untold("EchoTime", at=-300),
             said="(--leave-out series=3,"),
    Protocol("a sequence untold in all", sequence_untold_in_all, P),
    Protocol("fat saturation midway", fat_saturation_midway, said="--use"),
    Protocol("water named midway", water_named_midway, said="--use"),
    Protocol("pre without fat saturation", pre_without_fat_saturation,
             said="(--leave-out series=4)"),
    Protocol("last without fat saturation", last_without_fat_saturation, said="--leave-out"),
    Protocol("Dixon water and in-phase", dixon_water_and_in_phase, P),
    Protocol("inversion times", inversion_times, said="none of them is a dynamic"),
    Protocol("magnetisation transfer", magnetisation_transfer, said="none of them is a dynamic"),
    Protocol("half of the slices", half_of_the_slices_in_another_series, said="the same size"),
    Protocol("a slice less in one series", a_slice_less_in_one_series, said="the same size"),
    Protocol("blank phase", blank_phase),
    Protocol("failed phase", failed_phase),
    Protocol("pre of another day", pre_of_another_day, said="one exam"),
    Protocol("pre of the morning", pre_of_the_morning, said="one exam"),
    Protocol("another landmark", moved_to_another_landmark, P, said="frames of reference"),
    Protocol("a weak contrast", weak_dynamic(share=0.3), ANY),
    Protocol("a tumour alone enhances", weak_dynamic(**ALONE), ANY, said="do not show clearly"),
    Protocol("a weak tumour alone", weak_dynamic(**ALONE, share=0.3), ANY,
             said="do not show clearly"),
    Protocol("a tumour before the rest", tumour_before_the_rest, said="phase is unclear"),
    Protocol("pre twice on large planes", weak_dynamic({}), ANY),
    Protocol("pre twice, moved", weak_dynamic({"shift": 2}), ANY),
    Protocol("pre twice, weak contrast", weak_dynamic({}, share=0.3), ANY),
    Protocol("pre twice, a tumour alone", weak_dynamic({}, **ALONE), said="phase is unclear"),
    Protocol("pre twice, gain falls off", weak_dynamic({"gain": 0.4}), ANY),
    Protocol("pre twice, gain falls off a bit", weak_dynamic({"gain": 0.2}),
             said="phase is unclear"),
    Protocol("pre twice, gain and motion", weak_dynamic({"gain": 0.4, "shift": 3}), ANY,
             or_refused=True),
    Protocol("a dynamic named sub", beside_a_dynamic_named,
             said="pre-contrast series (--use series=5,6,7,8,9,10)"),
    Protocol("a series named for its subtraction", series_named("SAG VIBRANT w/ subtraction"),
             said="pre-contrast series (--use series=5)"),
    Protocol("a series named for its MIP", series_named("dyn_MIP_ready"),
             said="pre-contrast series (--use series=5)"),
    *(
        Protocol(f"a phase from behind, {name}", stored_from_behind(**how), P, said="was flipped")
        for name, how in {
            "rows": {"rows": True}, "columns": {"columns": True},
            "both": {"rows": True, "columns": True},
            "in its series": {"rows": True, "inside": True},
        }.items()
    ),
    Protocol("four parts without a word", four_parts_without_a_word,
             said="(--leave-out series=6,7,8, or --leave-out series=5,7,8, or --leave-out "
             "series=5,6,8, or --leave-out series=5,6,7)"),
    Protocol("two echoes without times", two_echoes_without_times,
             said="differ: echo 1 and 2; choose the series to use (--use series=5,echo=1"),
    Protocol("echo numbers that count phases", echo_numbers_that_count_phases, P),
    Protocol("last phase without a sequence", last_phase_without_a_sequence, P[:5],
             times=TIMES[:5], said="series 10: 1 phase with the size and position of the"),
    Protocol("ASSET in the name", asset_in_the_name, P),
    Protocol("differences inside, with an offset", differences(offset=300, inside=True), FIVE,
             said="(a subtraction)", times=AT_FIVE),
    Protocol("differences inside, cut at zero", differences(inside=True), FIVE,
             said="(a subtraction)", times=AT_FIVE),
    Protocol("differences between the phases", differences(inside=True, gap=5), FIVE,
             said="(a subtraction)", times=AT_FIVE),
    Protocol("differences as frames", differences_as_frames, FIVE, said="(a subtraction)",
             times=AT_FIVE),
    Protocol("one difference at the end", made(lambda v: v[4] - v[0] + 0.0, inside=True), FIVE,
             said="(a subtraction)", times=AT_FIVE),
    Protocol("differences of moved phases", differences((0.3, 0.3)), FIVE,
             or_refused=True, times=AT_FIVE),
    Protocol("differences of phases moved far", differences((4.3, 5.6), 300.0, name="dyn 2-1"),
             said="--leave-out series=31"),
    Protocol("differences of moved phases between", differences((0.3, 0.3), inside=True, gap=5),
             FIVE, or_refused=True, times=AT_FIVE),
    Protocol("differences of absent scans", differences_of_scans_that_are_not_there,
             said="--leave-out series=5,phase="),
    Protocol("wash-out inside", made(lambda v: v[4] - v[1] + 400.0, inside=True),
             said="--leave-out series=5,phase="),
    Protocol("a maximum over time", made(lambda v: np.max(v, 0)), said="--leave-out series=9"),
    Protocol("a minimum over time", made(lambda v: np.min(v[1:], 0)), said="--leave-out series=9"),
    Protocol("a mean over time", made(lambda v: np.mean(v[1:], 0)), said="--leave-out series=9"),
    Protocol("a median inside", made(lambda v: np.median(v, 0), inside=True),
             said="--leave-out series=5,phase=5"),
    Protocol("a smoothed copy", made(lambda v: ndimage.uniform_filter(v[4] + 0.0, (0, 3, 3))),
             said="--leave-out series=9"),
    Protocol("a copy moved by a voxel", made(lambda v: np.roll(v[4], 1, 2)),
             said="--leave-out series=9"),
    Protocol("a copy moved by parts of a voxel", made(lambda v: shifted(v[4], 0.4, 0.3)),
             said="--leave-out series=9"),
    Protocol("a copy that fades to one side",
             made(lambda v: v[4] * np.linspace(0.7, 1.3, LARGE[2])), said="--leave-out series=9"),
    Protocol("a mean of two phases", made(lambda v: (v[3] + v[4]) / 2),
             said="--leave-out series=9"),
    Protocol("sliding projections", made(lambda v: np.max([np.roll(v[4], n, 0)
             for n in (-1, 0, 1)], 0)), said="--leave-out series=9"),
    Protocol("a ratio of two phases", made(lambda v: 300.0 * v[2] / (v[0] + 30.0)),
             said="--leave-out series=9"),
    Protocol("a slab over 7 planes", slab_of_a_phase(7), said="--leave-out series=9"),
    Protocol("a slab over 11 planes", slab_of_a_phase(11), said="--leave-out series=9"),
    Protocol("a slab to one side", slab_of_a_phase(4, -2), said="--leave-out series=9"),
    Protocol("slabs after the pre", slabs_after_the_pre, said="--use series=5,6,7,8,9"),
    Protocol("a mean of neighbours between them", mean_between, said="(--leave-out series=9, or"),
    *(Protocol(f"another gain after the pre: {gain}", received(1, *[gain] * 4),
               said="measured (--use series=5,6,7,8,9)") for gain in (0.7, 0.75, 0.8)),
    Protocol("another gain in the last phase", received(1, 1, 1, 1, 0.6),
             said="phase 4 is about 0.6"),
    Protocol("another gain after the pre, named", received(1, *[0.75] * 4), FIVE, times=AT_FIVE,
             use=("series=5,6,7,8,9",), said="are about 0.7"),
    Protocol("a minimum of several at the end", made(lambda v: 0.5 * np.min(v, 0)),
             said="--leave-out series=9"),
    Protocol("the pre left out", received(1, 1, 1, 1, 1), (None,) * 4, times=(0, 75, 150, 225),
             use=("series=6,7,8,9",), said="contrast arrived between it and phase 0"),
    Protocol("the pre at the end", lambda folder: [series(folder, 5 + k, k, whole((k + 1) % 5),
             TIMES[k]) for k in range(5)], said="looks pre-contrast, although it follows"),
    Protocol("moved copies of all phases", moved_copies, said="--leave-out series=9"),
    Protocol("second injection without a pre", second_injection_without_a_pre,
             said="--leave-out series=9"),
    Protocol("second injection in the series",
             lambda folder: second_injection_without_a_pre(folder, 5),
             said="--leave-out series=5,phase=5,6,7,8"),
    Protocol("a position lost at the end", positions_lost(5), P[:5], times=AT_FIVE,
             said="images of only 5 were found (missing: 6)"),
    Protocol("positions lost amid", positions_lost(2, 3), (0, 1, 4, 5), times=(0, 75, 300, 375),
             said="images of only 4 were found (missing: 3, 4)"),
    Protocol("a series of one position lost", positions_lost_in_series_of_one, P[:5],
             times=AT_FIVE, said="images of only 5"),
    Protocol("view sharing", view_sharing, (None,) * 14, said="view sharing",
             times=tuple(range(0, 84, 6))),
)  # fmt: skip
