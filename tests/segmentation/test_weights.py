"""What is said of a model before anything of it is loaded, and which zips are refused."""

import hashlib
import json
import stat
import zipfile

import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import open_files, unpack
from napari_mamamia.segmentation.run.weights import recognise_model

pytest.importorskip("torch")


def zipped(folder, target, **options):
    with zipfile.ZipFile(target, "w", **options) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder).as_posix())
    return target


def zip_of(target, names, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in names:
            archive.writestr(name, content)
    return target


def test_a_result_folder_is_recognised_at_any_level(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(folds=("0", "3"), residual=True))
    for path in (root, root.parent, tmp_path):
        card = recognise_model(path)
        assert card.kind is ModelKind.NNUNET
        assert card.usable
        assert (card.trainer, card.configuration) == ("nnUNetTrainer", "3d_fullres")
        assert card.folds == ("0", "3")
        assert card.channels == ("DCE_pre", "DCE_post1")
        assert card.labels == (("tumour", (1,)),)
        assert dict(card.facts)["network"] == "ResidualEncoderUNet"


def test_the_sum_of_one_file_is_the_files_and_of_several_that_of_their_list(made, tmp_path):
    one = made.write_model(tmp_path / "one", made.Spec())
    file = one / "fold_0" / "checkpoint_final.pth"
    assert recognise_model(one).sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    two = made.write_model(tmp_path / "two", made.Spec(folds=("0", "1")))
    sums = [
        hashlib.sha256((two / f"fold_{k}" / "checkpoint_final.pth").read_bytes()).hexdigest()
        for k in (0, 1)
    ]
    assert recognise_model(two).sha256 == hashlib.sha256("\n".join(sums).encode()).hexdigest()
    assert recognise_model(two, checksums=False).sha256 == ""


def test_a_zip_is_recognised_without_unpacking_it(made, tmp_path):
    made.write_model(tmp_path / "results", made.Spec())
    (tmp_path / "results" / "LICENSE.txt").write_text("CC BY 4.0")
    path = zipped(tmp_path / "results", tmp_path / "model.zip")
    before = sorted(tmp_path.iterdir())
    card = recognise_model(path)
    assert card.is_zip
    assert card.usable
    assert card.inner == "Dataset900_Made/nnUNetTrainer__nnUNetPlans__3d_fullres"
    assert card.licence == "CC BY 4.0"
    assert sorted(tmp_path.iterdir()) == before


def test_several_models_below_a_folder_are_listed_and_one_can_be_chosen(made, tmp_path):
    for name in ("3d_fullres", "2d"):
        patch = (16, 16) if name == "2d" else (16, 16, 16)
        made.write_model(tmp_path / name, made.Spec(configuration=name, patch=patch))
    with pytest.raises(ModelError, match=r"found 2.*__2d.*__3d_fullres"):
        recognise_model(tmp_path)
    inner = "2d/Dataset900_Made/nnUNetTrainer__nnUNetPlans__2d"
    assert recognise_model(tmp_path, inner=inner).configuration == "2d"


def test_a_cascade_and_its_first_stage_are_one_model(made, tmp_path):
    low = made.write_model(tmp_path, made.Spec(configuration="3d_lowres"))
    high = made.Spec(configuration="3d_cascade_fullres", previous_stage="3d_lowres")
    made.write_model(tmp_path / "b", high).rename(
        low.parent / "nnUNetTrainer__nnUNetPlans__3d_cascade_fullres"
    )
    plans = low.parent / "nnUNetTrainer__nnUNetPlans__3d_cascade_fullres" / "plans.json"
    found = json.loads(plans.read_text())
    found["configurations"]["3d_cascade_fullres"]["previous_stage"] = "3d_lowres"
    plans.write_text(json.dumps(found))
    assert recognise_model(low.parent).configuration == "3d_cascade_fullres"
    low.rename(tmp_path / "elsewhere")
    assert (
        "3d_lowres, but that model's folder is not next to it"
        in recognise_model(low.parent).missing[0]
    )


def test_what_is_missing_is_said(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    (root / "dataset.json").unlink()
    assert "lacks dataset.json" in recognise_model(root).missing[0]
    bare = made.write_model(tmp_path / "b", made.Spec())
    (bare / "fold_0" / "checkpoint_final.pth").unlink()
    assert "expected a fold" in recognise_model(bare).missing[0]


def test_other_kinds_are_told_apart_by_name(tmp_path):
    names = {
        "plans.pkl": ModelKind.NNUNET_V1,
        "configs/metadata.json": ModelKind.MONAI_BUNDLE,
        "net.onnx": ModelKind.ONNX,
        "net.safetensors": ModelKind.SAFETENSORS,
        "net.xml": ModelKind.OPENVINO,
        "notes.txt": ModelKind.UNKNOWN,
    }
    for number, (name, kind) in enumerate(names.items()):
        file = tmp_path / str(number) / name
        file.parent.mkdir(parents=True)
        file.write_bytes(b'<net name="n"></net>' if name == "net.xml" else b"{}")
        card = recognise_model(tmp_path / str(number))
        assert card.kind is kind
        assert not card.usable  # none of these empty files can be run
    assert "Train or convert it with nnU-Net v2" in recognise_model(tmp_path / "0").missing[0]


def test_a_submission_is_told_by_its_class(tmp_path):
    (tmp_path / "model.py").write_text("import os\n\nclass Model:\n    pass\n")
    assert recognise_model(tmp_path).kind is ModelKind.SUBMISSION


def test_torchscript_and_exported_files_are_told_apart_from_inside(tmp_path):
    script = zip_of(tmp_path / "a.pt", [("net/data.pkl", b""), ("net/code/x.py", b"")])
    exported = zip_of(tmp_path / "b.pt2", [("net/archive_format", b"pt2"), ("net/models/m", b"")])
    assert recognise_model(script).kind is ModelKind.TORCHSCRIPT
    assert recognise_model(exported).kind is ModelKind.EXPORTED


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/etc/evil", "a/../../evil", "C:/evil", "a\\..\\evil", "..", "a/. ./b"]
)
def test_a_name_that_leaves_the_folder_is_refused_and_nothing_is_written(name, tmp_path):
    path = zip_of(tmp_path / "bad.zip", [("plans.json", b"{}"), (name, b"x")])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ModelError, match=r"points outside the folder|absolute path"):
        open_files(path)
    with pytest.raises(ModelError):
        unpack(path, tmp_path / "cache")
    left = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert left == [file for file in before if file.is_file()]


def test_a_link_in_a_zip_is_refused(tmp_path):
    path = tmp_path / "link.zip"
    member = zipfile.ZipInfo("plans.json")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(ModelError, match="is a link"):
        open_files(path)


def test_a_zip_that_grows_too_much_is_refused(tmp_path):
    path = zip_of(tmp_path / "bomb.zip", [("plans.json", bytes(40_000_000))], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(ModelError, match="was not unpacked"):
        open_files(path)


def test_a_member_larger_than_its_directory_says_is_refused(tmp_path):
    path = zip_of(tmp_path / "liar.zip", [("plans.json", b"x" * 5000)], zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    place = data.rfind(b"PK\x01\x02")
    data[place + 24 : place + 28] = (10).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(ModelError):
        unpack(path, tmp_path / "cache")
    assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()] == []


def test_a_zip_is_unpacked_once_without_its_pickles(made, tmp_path):
    made.write_model(tmp_path / "results", made.Spec())
    (tmp_path / "results" / "postprocessing.pkl").write_bytes(b"cos\nsystem\n")
    path = zipped(tmp_path / "results", tmp_path / "model.zip")
    first = unpack(path, tmp_path / "cache")
    names = {file.name for file in first.rglob("*") if file.is_file()}
    assert names == {"plans.json", "dataset.json", "checkpoint_final.pth"}
    assert unpack(path, tmp_path / "cache") == first
    assert [p.name for p in first.parent.iterdir()] == [first.name]


def test_a_closed_unpacking_leaves_nothing(made, tmp_path):
    made.write_model(tmp_path / "results", made.Spec())
    path = zipped(tmp_path / "results", tmp_path / "model.zip")
    job = Stepped(unpack, path, tmp_path / "cache")
    for _ in range(3):
        next(job)
    job.close()
    assert list((tmp_path / "cache" / "models").iterdir()) == []


def test_broken_plans_are_refused_with_the_file(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    (root / "plans.json").write_text('{"configurations": ')
    with pytest.raises(ModelError, match=r"plans\.json as JSON"):
        recognise_model(root)


def test_configurations_that_inherit_in_a_circle_are_refused(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    plans = json.loads((root / "plans.json").read_text())
    plans["configurations"]["made_parent"]["inherits_from"] = "3d_fullres"
    (root / "plans.json").write_text(json.dumps(plans))
    with pytest.raises(ModelError, match="not to inherit from itself"):
        recognise_model(root)


def test_the_real_folder_is_recognised(real_data):
    card = recognise_model(real_data("nnunet"))
    assert card.channels == ("DCE_pre", "DCE_post1", "DCE_post2")
    assert dict(card.facts)["patch"] == "64 x 64 x 64"


def test_a_zip_whose_member_is_smaller_than_its_directory_says_is_named(tmp_path):
    path = zip_of(tmp_path / "model.zip", [("a/plans.json", b"{}" * 40)], zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")  # the central directory: the full size stands at byte 24
    data[entry + 24 : entry + 28] = (81).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(ModelError, match=r"model\.zip to have the size .*but it is smaller"):
        unpack(path, tmp_path / "cache")
