"""Models that are damaged, do not fit, or want to run something: refused, and nothing is run."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.nnunet_plans import read_plans
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.run.weights import recognise_model

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

from napari_mamamia.segmentation.model.engine import EngineInput  # noqa: E402
from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint  # noqa: E402

GRID = Grid((16, 16, 16), np.eye(4))


def loaded(root, **settings):
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet

    return load_nnunet(recognise_model(root), EngineSettings(**settings))


def edited(root, change):
    plans = json.loads((root / "plans.json").read_text())
    change(plans["configurations"]["made_parent"])
    (root / "plans.json").write_text(json.dumps(plans))


class Trap:
    """Unpickling it would make a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


@pytest.mark.parametrize("place", ["logging", "network_weights"])
def test_a_checkpoint_that_wants_to_run_something_is_refused_and_not_run(made, tmp_path, place):
    root = made.write_model(tmp_path, made.Spec())
    file = root / "fold_0" / "checkpoint_final.pth"
    found = torch.load(file, weights_only=False)
    bait = tmp_path / "was_run"
    found[place] = Trap(bait)
    torch.save(found, file)
    with pytest.raises(ModelError, match=r"loading it would call .*pathlib") as refused:
        loaded(root)
    assert "neither opened nor run" in str(refused.value)
    assert not bait.exists()
    with file.open("rb") as stream:  # the trap is real: the usual reader falls into it
        torch.load(stream, weights_only=False)
    assert bait.exists()


def test_a_plain_pickle_is_refused_and_not_run(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    bait = tmp_path / "was_run"
    (root / "fold_0" / "checkpoint_final.pth").write_bytes(pickle.dumps(Trap(bait)))
    with pytest.raises(
        ModelError,  # from Python 3.13 on they are in pathlib._local
        match=r"would call pathlib[._local]*\.Path\.touch, pathlib[._local]*\.PosixPath,",
    ):
        loaded(root)
    assert not bait.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("network_class_name", "os.system"),
        ("network_class_name", "evil.PlainConvUNet"),
        ("network_class_name", "dynamic_network_architectures.architectures.primus.Primus"),
    ],
)
def test_a_network_that_is_not_on_the_list_is_refused(made, tmp_path, key, value):
    root = made.write_model(tmp_path, made.Spec())
    edited(root, lambda found: found["architecture"].update({key: value}))
    with pytest.raises(ModelError, match="nothing was imported"):
        loaded(root)


def test_an_operation_that_is_not_on_the_list_is_refused_and_not_imported(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    (tmp_path / "evil_module.py").write_text("raise SystemExit")
    edited(
        root,
        lambda found: found["architecture"]["arch_kwargs"].update(nonlin="evil_module.LeakyReLU"),
    )
    with pytest.raises(ModelError, match=r"to be one of torch\.nn's"):
        loaded(root)


def test_an_import_smuggled_into_another_argument_is_refused(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())

    def smuggle(found):
        found["architecture"]["arch_kwargs"]["block"] = "subprocess.Popen"
        found["architecture"]["_kw_requires_import"].append("block")

    edited(root, smuggle)
    with pytest.raises(ModelError, match="nnU-Net's own networks, but found 'block'"):
        loaded(root)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("resampling_fn_data", "os.system", "the resampling"),
        ("normalization_schemes", ["os.system", "x"], "the normalisation to be one of"),
    ],
)
def test_functions_that_are_not_on_the_list_are_refused(made, tmp_path, key, value, what):
    root = made.write_model(tmp_path, made.Spec())
    edited(root, lambda found: found.update({key: value}))
    with pytest.raises(ModelError, match=what):
        recognise_model(root)


def test_a_cut_off_checkpoint_is_refused(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    file = root / "fold_0" / "checkpoint_final.pth"
    data = file.read_bytes()
    for kept in (0, 3, len(data) // 2, len(data) - 100):
        file.write_bytes(data[:kept])
        with pytest.raises(ModelError, match="checkpoint"):
            loaded(root)


def test_a_missing_fold_is_named_with_those_that_are_there(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(folds=("0", "2")))
    with pytest.raises(ModelError, match="the folds 0, 2, but not 1"):
        loaded(root, folds=("0", "1"))


def test_folds_without_a_common_checkpoint_are_refused(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(folds=("0", "1")))
    file = root / "fold_1" / "checkpoint_final.pth"
    file.rename(file.with_name("checkpoint_best.pth"))
    with pytest.raises(ModelError, match="have a checkpoint with the same name"):
        loaded(root)
    assert loaded(root, folds=("1",), checkpoint="checkpoint_best.pth").folds == ("1",)


def test_weights_of_another_network_are_refused_with_the_first_difference(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    wider = {"features_per_stage": [4, 8]}
    edited(root, lambda found: found["architecture"]["arch_kwargs"].update(wider))
    with pytest.raises(ModelError, match=r"where encoder.*instead of \(8"):
        loaded(root)


def test_an_unknown_trainer_is_refused_unless_it_is_accepted(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(trainer="nnUNetTrainerOfMine"))
    with pytest.raises(ModelError, match=r"nnUNetTrainerOfMine.*accept_trainer"):
        loaded(root)
    assert loaded(root, accept_trainer=True).folds == ("0",)


def test_a_wrong_number_of_channels_is_refused(made, tmp_path):
    engine = loaded(made.write_model(tmp_path, made.Spec()))
    volume = np.ones(GRID.shape, dtype=np.int16)
    with pytest.raises(ModelError, match=r"2 channels of .* \(DCE_pre, DCE_post1\), but got 1"):
        engine.predict(EngineInput([volume], GRID))


def test_an_empty_or_infinite_volume_is_refused(made, tmp_path):
    engine = loaded(made.write_model(tmp_path, made.Spec()))
    empty = np.zeros(GRID.shape, dtype=np.int16)
    with pytest.raises(CaseError, match="every voxel of the input is zero"):
        engine.predict(EngineInput([empty, empty], GRID))
    broken = np.full(GRID.shape, np.nan, dtype=np.float32)
    with pytest.raises(CaseError, match="finite everywhere"):
        engine.predict(EngineInput([empty, broken], GRID))


def test_a_graphics_card_that_is_not_there_is_refused(made, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("a graphics card is there")
    root = made.write_model(tmp_path, made.Spec())
    with pytest.raises(ModelError, match="cuda to be available, but torch finds only cpu"):
        loaded(root, device="cuda")


@pytest.mark.parametrize(
    "wrong", [{"step": 0.0}, {"step": 1.5}, {"threads": 0}, {"device": "tpu"}, {"backend": "tf"}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ModelError):
        EngineSettings(**wrong)


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("patch_size", [16, 0, 16], "expected the patch to have 2 or 3 extents"),
        ("patch_size", [16, 16, 10**9], "expected the patch to have 2 or 3 extents"),
        ("patch_size", [16, INFINITE, 16], "expected 3d_fullres as nnU-Net v2 describes it"),
        ("spacing", [NAN, 1, 1], "expected the spacing to be 3 numbers"),
        ("spacing", [1e-9, 1, 1], "expected the spacing to be 3 numbers"),
        ("spacing", [1, 1], "expected the spacing to be 3 numbers"),
        ("previous_stage", "/../../elsewhere", "could lead to another folder"),
    ],
)
def test_plans_with_numbers_or_names_that_cannot_be_are_refused(made, key, value, said):
    plans = made.plans_of(made.Spec())
    plans["configurations"]["made_parent"][key] = value
    dataset = json.dumps(made.dataset_of(made.Spec()))
    with pytest.raises(ModelError, match=said):
        read_plans(json.dumps(plans), dataset, "3d_fullres", "here")


def test_plans_that_are_nested_deeply_are_refused():
    deep = "[" * 200_000
    with pytest.raises(ModelError, match="as JSON"):
        read_plans(deep, deep, "3d_fullres", "here")


@pytest.mark.parametrize("name", ["/etc/passwd", "../../other.pth", "..", "a/b.pth", "C:\\x.pth"])
def test_a_checkpoint_outside_its_folds_folder_is_refused(name):
    with pytest.raises(ModelError, match="the checkpoint to be a file name in a fold's folder"):
        Recipe(checkpoint=name).settings(EngineSettings())


def test_a_checkpoint_that_unpacks_to_much_more_than_it_is_is_not_opened(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    file = root / "fold_0" / "checkpoint_final.pth"
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/bomb", bytes(80 * 2**20))
    assert file.stat().st_size < 2**20
    with pytest.raises(ModelError, match=r"but it would unpack to 0\.08 GB"):
        load_checkpoint(file)


def test_mirroring_axes_that_a_model_cannot_have_are_refused(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(mirror=(0, 7)))
    with pytest.raises(ModelError, match="mirroring axes from 0 to 2"):
        load_checkpoint(root / "fold_0" / "checkpoint_final.pth")


@pytest.mark.parametrize("name", ["plans.json", "LICENSE"])
def test_a_text_that_is_a_link_out_of_the_model_is_not_read(made, tmp_path, name):
    root = made.write_model(tmp_path, made.Spec())
    secret = tmp_path / "secret.txt"
    secret.write_text("the user's own words")
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(secret)
    with pytest.raises(ModelError, match=f"{name} to be a file of the model, but it is a link"):
        recognise_model(root)


def test_links_into_the_cache_of_huggingface_hub_are_followed(made, tmp_path):
    root = made.write_model(tmp_path / "made", made.Spec())
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0f" / root.name
    for file in sorted(root.rglob("*.*")):
        if file.is_file():
            blob = tmp_path / "models--a--b" / "blobs" / file.name
            blob.parent.mkdir(parents=True, exist_ok=True)
            file.rename(blob)
            link = snapshot / file.relative_to(root)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(blob)
    card = recognise_model(snapshot)
    assert card.usable
    assert card.folds == ("0",)


def test_a_checkpoint_with_any_bytes_changed_is_read_or_refused(made, tmp_path):
    file = made.write_model(tmp_path, made.Spec()) / "fold_0" / "checkpoint_final.pth"
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in members if name.endswith("data.pkl"))
    rng, refused = np.random.default_rng(5), 0
    for _ in range(150):
        data = bytearray(members[pickled])
        for place in rng.integers(0, len(data), 3):
            data[place] = rng.integers(0, 256)
        with zipfile.ZipFile(file, "w") as archive:
            for name, kept in members.items():
                archive.writestr(name, bytes(data) if name == pickled else kept)
        try:
            load_checkpoint(file)
        except ModelError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    "text", [b"", b"root:x:0:0\n" * 10, b"\x80\x02" + bytes(40), b"PK\x03\x04"]
)
def test_a_checkpoint_that_is_something_else_is_refused_without_its_words(text, tmp_path):
    file = tmp_path / "checkpoint_final.pth"
    file.write_bytes(text)
    with pytest.raises(ModelError) as refused:
        load_checkpoint(file)
    assert "root:" not in str(refused.value)


@pytest.mark.parametrize("number", [NAN, INFINITE])
def test_weights_that_give_no_numbers_are_an_error_and_never_an_empty_mask(made, tmp_path, number):
    root = made.write_model(tmp_path, made.Spec(channels=("a",), mirror=None))
    file = root / "fold_0" / "checkpoint_final.pth"
    content = torch.load(file, weights_only=False)
    name = next(name for name in content["network_weights"] if name.endswith("weight"))
    content["network_weights"][name].flatten()[0] = number
    torch.save(content, file)
    volume = np.random.default_rng(3).normal(100, 20, GRID.shape).astype(np.float32)
    with pytest.raises(ModelError, match=r"NaN or infinite; the weights are damaged"):
        loaded(root).predict(EngineInput([volume], GRID))


@pytest.mark.parametrize(("key", "order"), [("order", 99), ("order", -1), ("order_z", 6)])
def test_splines_of_an_order_that_does_not_exist_are_refused(made, tmp_path, key, order):
    root = made.write_model(tmp_path, made.Spec())
    edited(root, lambda c: c["resampling_fn_data_kwargs"].update({key: order}))
    with pytest.raises(ModelError, match="spline orders to be from 0 to 5"):
        loaded(root)


@pytest.mark.parametrize(("spacing_mm", "extents"), [(0.001, "0 x 0 x 0"), (900.0, "14400 x")])
def test_a_case_whose_spacing_cannot_be_meant_is_refused_with_the_numbers(
    made, tmp_path, spacing_mm, extents
):
    engine = loaded(made.write_model(tmp_path, made.Spec(channels=("a",), mirror=None)))
    grid = Grid((16, 16, 16), np.diag([spacing_mm, spacing_mm, spacing_mm, 1.0]))
    volume = np.ones(grid.shape, np.int16)
    with pytest.raises(ModelError, match="correct the spacing of the images") as refused:
        engine.predict(EngineInput([volume], grid))
    assert extents in str(refused.value)
    with pytest.raises(ModelError, match="correct the spacing of the images"):
        engine.plan(grid)


def test_plans_that_resample_the_input_but_not_the_outputs_are_refused(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(channels=("a",), spacing=(2.0, 2.0, 2.0)))
    edited(root, lambda c: c.update(resampling_fn_probabilities="no_resampling_hack"))
    with pytest.raises(ModelError, match="resample the input and not the outputs"):
        loaded(root).predict(EngineInput([np.ones(GRID.shape, np.int16)], GRID))


@pytest.mark.parametrize("said", [1, 10**6])
def test_a_zip_that_lies_about_the_size_of_a_file_is_refused(made, tmp_path, said):
    """The directory at the end of the zip gives plans.json another size than it has."""
    root = made.write_model(tmp_path, made.Spec())
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(tmp_path).as_posix())
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    while b"plans.json" not in data[entry : entry + 46 + 200].split(b"PK\x01\x02")[1]:
        entry = data.index(b"PK\x01\x02", entry + 4)
    data[entry + 24 : entry + 28] = said.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ModelError):
        load_zip(path)


def load_zip(path):
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet

    return load_nnunet(recognise_model(path), EngineSettings())
