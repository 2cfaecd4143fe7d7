"""Bundles that want to run something, or that cannot be run here: nothing runs, and why is said."""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packages import need_package

sys.path.insert(0, str(Path(__file__).parent))

torch = pytest.importorskip("torch")
need_package("monai")

from bundle_maker import config, metadata, network, write_bundle  # noqa: E402

from napari_mamamia.core.errors import MissingExtraError, ModelError  # noqa: E402
from napari_mamamia.segmentation.bundle.allowed import (  # noqa: E402
    AFTER,
    BEFORE,
    NETWORKS,
    SPATIAL,
)
from napari_mamamia.segmentation.bundle.config import References, understood  # noqa: E402
from napari_mamamia.segmentation.model import device  # noqa: E402
from napari_mamamia.segmentation.model.engine_settings import EngineSettings  # noqa: E402
from napari_mamamia.segmentation.model.kinds import ModelKind  # noqa: E402
from napari_mamamia.segmentation.run.engines import load_engine  # noqa: E402
from napari_mamamia.segmentation.run.weights import recognise_model  # noqa: E402


@pytest.fixture
def mark(tmp_path):
    """Return a file that exists only if something of a bundle was run."""
    yield tmp_path / "was run"
    assert not (tmp_path / "was run").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a good bundle's folder; tests write their own configs into copies."""
    return write_bundle(tmp_path_factory.mktemp("bundles") / "good")


def bundle_with(whole, folder, inference=None, about=None):
    """Return a bundle with other configs and the good one's weights."""
    (folder / "configs").mkdir(parents=True)
    (folder / "models").mkdir()
    weights = (whole / "models" / "model.pt").read_bytes()
    (folder / "models" / "model.pt").write_bytes(weights)
    (folder / "configs" / "metadata.json").write_text(json.dumps(about or metadata()))
    (folder / "configs" / "inference.json").write_text(json.dumps(inference or config()))
    return folder


def refusal(path):
    """Return why a bundle is refused, which recognising and loading must agree on."""
    card = recognise_model(path)
    assert card.kind is ModelKind.MONAI_BUNDLE
    assert card.missing
    with pytest.raises(ModelError):
        load_engine(card, EngineSettings(device="cpu"))
    return "; ".join(card.missing)


def step(inference, number, part="preprocessing"):
    return inference[part]["transforms"][number]


@pytest.mark.parametrize("place", ["roi_size", "argument", "network", "disabled", "key"])
def test_an_expression_where_a_value_is_needed_is_refused_with_key_and_text(
    whole, tmp_path, mark, place
):
    evil = f"$__import__('os').system('touch \"{mark}\"')"
    inference = config()
    if place == "roi_size":
        inference["patch_size"], key = evil, "patch_size"
    elif place == "argument":
        step(inference, 3)["pixdim"], key = evil, "preprocessing#transforms#3#pixdim"
    elif place == "network":
        inference["network_def"]["channels"], key = [4, evil], "network_def#channels#1"
    elif place == "disabled":
        step(inference, 2)["_disabled_"], key = evil, "preprocessing#transforms#2#_disabled_"
    else:
        inference["postprocessing"], key = evil, "postprocessing"
    said = refusal(bundle_with(whole, tmp_path / "b", inference))
    assert key in said
    assert "__import__" in said
    assert "write it as a value" in said


@pytest.mark.parametrize("target", ["os.system", "builtins.eval", "scripts.net.Net"])
@pytest.mark.parametrize("place", ["transform", "network", "inferer"])
def test_a_class_outside_monai_is_not_looked_up(whole, tmp_path, mark, monkeypatch, target, place):
    (tmp_path / "scripts").mkdir()
    code = f"open({str(mark)!r}, 'w')\nclass Net: pass\n"
    (tmp_path / "scripts" / "net.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    evil = {"_target_": target, "command": f"touch '{mark}'", "keys": "image"}
    inference = config()
    if place == "transform":
        inference["preprocessing"]["transforms"].append(evil)
    else:
        inference["network_def" if place == "network" else "inferer"] = evil
    said = refusal(bundle_with(whole, tmp_path / "b", inference))
    assert target in said
    assert "neither imported nor run" in said


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("preprocessing", "Lambdad"),
        ("preprocessing", "monai.transforms.RandRotated"),
        ("postprocessing", "monai.transforms.SobelGradientsd"),
    ],
)
def test_a_transform_that_is_not_in_the_list_is_refused_by_name(whole, tmp_path, part, name):
    inference = config()
    inference[part]["transforms"].insert(1, {"_target_": name, "keys": "image"})
    said = refusal(bundle_with(whole, tmp_path / "b", inference))
    assert name.rpartition(".")[2] in said
    assert f"{part}#transforms#1" in said


def test_a_network_of_monai_that_fetches_weights_is_refused_by_name(whole, tmp_path):
    inference = config()
    inference["network_def"] = {"_target_": "FlexibleUNet", "in_channels": 2, "pretrained": True}
    assert "FlexibleUNet" in refusal(bundle_with(whole, tmp_path / "b", inference))


def test_a_pickle_with_a_payload_names_what_it_would_call(whole, tmp_path, mark):
    class Payload:
        def __reduce__(self):
            import os

            return os.system, (f"touch '{mark}'",)

    bundle = bundle_with(whole, tmp_path / "b")
    torch.save({"model": {}, "log": Payload()}, bundle / "models" / "model.pt")
    with pytest.raises(ModelError, match=r"would call posix\.system, so it was not loaded"):
        load_engine(recognise_model(bundle), EngineSettings(device="cpu"))


def test_a_zip_with_a_name_that_leaves_its_folder_is_refused(whole, tmp_path):
    packed = tmp_path / "evil.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("b/configs/metadata.json", json.dumps(metadata()))
        archive.writestr("../outside.txt", "x")
    with pytest.raises(ModelError, match="points outside the folder"):
        recognise_model(packed)
    assert not (tmp_path.parent / "outside.txt").exists()


def test_yaml_that_asks_for_an_object_is_refused(whole, tmp_path, mark):
    pytest.importorskip("yaml")
    bundle = bundle_with(whole, tmp_path / "b")
    (bundle / "configs" / "inference.json").unlink()
    evil = f"inferer: !!python/object/apply:os.system [\"touch '{mark}'\"]\n"
    (bundle / "configs" / "inference.yaml").write_text(evil)
    assert "python/object" in refusal(bundle)


def test_a_yaml_config_is_read_like_json(whole, tmp_path):
    yaml = pytest.importorskip("yaml")
    bundle = bundle_with(whole, tmp_path / "b")
    (bundle / "configs" / "inference.json").unlink()
    (bundle / "configs" / "inference.yaml").write_text(yaml.safe_dump(config()))
    assert recognise_model(bundle).usable


def test_the_debugger_is_not_entered(whole, tmp_path):
    inference = config()
    step(inference, 2)["_mode_"] = "debug"
    assert "_mode_" in refusal(bundle_with(whole, tmp_path / "b", inference))


def test_references_in_a_circle_and_references_that_explode_are_refused():
    with pytest.raises(ModelError, match="cycle"):
        References({"a": "@b#0", "b": ["@c"], "c": {"d": "@a"}}, "here").value("a")
    bomb = {f"x{k}": [f"@x{k + 1}"] * 10 for k in range(9)} | {"x9": 1}
    with pytest.raises(ModelError, match="small config"):
        References(bomb, "here").value("x0")


def test_references_and_the_few_expressions_that_are_values_are_read():
    found = References(
        {
            "size": "$[20, 16, -1]",
            "kind": "$torch.float32",
            "net": {"_target_": "UNet", "n": 2},
            "moved": "$@net.to(@device)",
            "deep": {"first": "@size", "second": "@net::n"},
            "text": "a@b",
        },
        "here",
    )
    assert found.value("deep") == {"first": [20, 16, -1], "second": 2}
    assert found.value("moved") == {"_target_": "UNet", "n": 2}
    assert found.value("kind").name == "float32"
    assert found.value("text") == "a@b"
    for text in ("$print(1)", "$[1, 2][0]", "%other.json#a", "@gone", "$torch.load", "$@a + @b"):
        with pytest.raises(ModelError, match="here: expected key to be a value"):
            understood(References({"key": text, "a": 1, "b": 2}, "here").value("key"), "here")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.pop("preprocessing"), "preprocessing"),
        (lambda c: c["preprocessing"]["transforms"].pop(0), "LoadImaged"),
        (lambda c: c["postprocessing"]["transforms"].pop(2), "AsDiscreted"),
        (lambda c: c["inferer"].update(_target_="SliceInferer"), "SliceInferer"),
        (lambda c: c["inferer"].update(overlap=1.0), "overlap"),
        (lambda c: c["inferer"].update(roi_size=[8, 8]), "axes"),
        (lambda c: c.pop("network_def"), "network_def"),
        (lambda c: step(c, 1, "postprocessing").update(transform="@inferer"), "@preprocessing"),
    ],
)
def test_what_a_config_lacks_is_said(whole, tmp_path, change, said):
    inference = config()
    change(inference)
    assert said in refusal(bundle_with(whole, tmp_path / "b", inference))


def test_missing_files_and_data_format_are_said(whole, tmp_path):
    bundle = bundle_with(whole, tmp_path / "b", about={"version": "1"})
    assert "network_data_format" in refusal(bundle)
    (bundle / "models" / "model.pt").unlink()
    (bundle / "configs" / "inference.json").unlink()
    (bundle / "configs" / "metadata.json").write_text(json.dumps(metadata()))
    assert "configs/inference.json" in refusal(bundle)
    (bundle / "configs" / "inference.json").write_text(json.dumps(config()))
    assert "models/model.ts" in refusal(bundle)


def test_weights_that_do_not_fit_and_files_cut_off_are_said(whole, tmp_path):
    other = config() | {"network_def": network("UNet", channels=2, outputs=4)}
    bundle = bundle_with(whole, tmp_path / "b", other)
    with pytest.raises(ModelError, match=r"weights of UNet.*do not match"):
        load_engine(recognise_model(bundle), EngineSettings(device="cpu"))
    weights = (whole / "models" / "model.pt").read_bytes()
    (bundle / "models" / "model.pt").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match="damaged"):
        load_engine(recognise_model(bundle), EngineSettings(device="cpu"))
    (bundle / "models" / "model.ts").write_bytes(b"no network")
    with pytest.raises(ModelError, match="TorchScript"):
        load_engine(recognise_model(bundle), EngineSettings(device="cpu"))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"folds": ("0", "1")}, "no folds"),
        ({"step": 0.75}, "their own overlap"),
        ({"most_copies": 4}, "does not average mirrored copies"),
        ({"backend": "openvino"}, "only with torch"),
        ({"precision": "bf16"}, "own precision"),
        ({"checkpoint": "checkpoint_best.pth"}, "only one weights file"),
        ({"accept_trainer": True}, "no trainer"),
    ],
)
def test_a_setting_that_means_nothing_for_a_bundle_is_refused(whole, chosen, said):
    with pytest.raises(ModelError, match=said):
        load_engine(recognise_model(whole), EngineSettings(**chosen))


def test_without_monai_the_extra_is_named(whole, monkeypatch):
    there = device.importlib.util.find_spec
    monkeypatch.setattr(
        device.importlib.util, "find_spec", lambda name: None if name == "monai" else there(name)
    )
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[bundle\]"):
        load_engine(recognise_model(whole), EngineSettings())


def test_recognising_a_bundle_needs_neither_torch_nor_monai(whole):
    code = (
        "import sys; from pathlib import Path\n"
        "from napari_mamamia.segmentation.run.weights import recognise_model\n"
        "print(recognise_model(Path(sys.argv[1])).usable, 'torch' in sys.modules, "
        "'monai' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code, str(whole)], capture_output=True, text=True)
    assert said.stdout.split() == ["True", "False", "False"], said.stderr


def test_the_card_shows_inputs_labels_and_what_the_author_says(whole, tmp_path):
    card = recognise_model(whole)
    assert card.name == "Made up"
    assert card.channels == ("phase 0", "phase 1")
    assert card.labels == (("tumour", (1,)), ("vessel", (2,)))
    assert card.licence == "Copyright nobody"
    facts = dict(card.facts)
    assert facts["patch"] == "12 x 16 x 20"
    assert facts["spacing_mm"] == "1.5 x 1 x 1"
    assert (facts["network"], facts["version"]) == ("UNet", "0.3.1")
    changed = config()
    changed["inferer"]["overlap"] = 0.25
    other = bundle_with(whole, tmp_path / "b", changed)
    (other / "LICENSE").write_text("Apache License")
    assert recognise_model(other).licence == "Apache License"
    assert recognise_model(other).sha256 != card.sha256  # its configs decide its result too


def test_outputs_without_names_are_counted_from_background_where_the_largest_wins(whole, tmp_path):
    about = metadata()
    del about["network_data_format"]["outputs"]["pred"]["channel_def"]
    card = recognise_model(bundle_with(whole, tmp_path / "b", about=about))
    assert card.labels == (("output 1", (1,)), ("output 2", (2,)))
    inference = config()
    step(inference, 2, "postprocessing").pop("argmax")
    step(inference, 2, "postprocessing")["threshold"] = 0.5
    card = recognise_model(bundle_with(whole, tmp_path / "c", inference, about))
    assert card.labels == (("output 0", (1,)), ("output 1", (2,)), ("output 2", (3,)))


PARTS = ("preprocessing", "postprocessing", "inferer", "network_def", "patch_size", "evaluator")
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 400) | st.floats(allow_nan=False) | st.text()
    | st.sampled_from(["@patch_size", "@inferer", "$1", "$open('x')", "%a", "@preprocessing#0"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["_target_", "keys", "transforms", "roi_size", "overlap", "_disabled_"]),
        inner,
        max_size=3,
    ),
    max_leaves=6,
)  # fmt: skip


@settings(deadline=None, max_examples=80, derandomize=True)
@given(part=st.sampled_from(PARTS), into=st.integers(0, 5), odd=ODD)
def test_whatever_stands_in_a_config_it_is_a_card_that_says_why_or_a_good_one(part, into, odd):
    inference = config()
    if part.endswith("processing") and into:
        steps = inference[part]["transforms"]
        at = steps[into % len(steps)]
        at[sorted(at)[into % len(at)]] = odd
    else:
        inference[part] = odd
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "configs").mkdir()
        (place / "models").mkdir()
        (place / "models" / "model.pt").write_bytes(b"")
        (place / "configs" / "metadata.json").write_text(json.dumps(metadata()))
        (place / "configs" / "inference.json").write_text(json.dumps(inference))
        card = recognise_model(place, checksums=False)
    assert all(": " in said or "; " in said for said in card.missing)


def test_labels_that_are_brought_back_by_linear_interpolation_are_said(whole, tmp_path):
    inference = config()
    steps = inference["postprocessing"]["transforms"]
    steps[1], steps[2] = steps[2], steps[1]
    card = recognise_model(bundle_with(whole, tmp_path / "b", inference))
    assert "rounded" in str(dict(card.facts)["note"])
    assert "note" not in dict(recognise_model(whole).facts)


def test_every_name_in_the_lists_is_a_plain_class_of_monai():
    import monai.networks.nets
    import monai.transforms

    for name in BEFORE | AFTER:
        kind = getattr(monai.transforms, name)
        assert issubclass(kind, monai.transforms.MapTransform), name
        assert not issubclass(kind, monai.transforms.Randomizable), name
    for name in SPATIAL:
        assert issubclass(getattr(monai.transforms, name), monai.transforms.InvertibleTransform)
        assert issubclass(getattr(monai.transforms, name), monai.transforms.LazyTransform), name
    for name in NETWORKS:
        assert issubclass(getattr(monai.networks.nets, name), torch.nn.Module), name


@pytest.mark.parametrize(
    ("key", "value"),
    [("roi_size", [10**9] * 3), ("roi_size", float("inf")), ("sigma_scale", float("nan")),
     ("cval", float("inf")), ("overlap", float("nan"))],
)  # fmt: skip
def test_windows_with_numbers_that_cannot_be_are_refused(whole, tmp_path, key, value):
    inference = config()
    inference["inferer"][key] = value
    card = recognise_model(bundle_with(whole, tmp_path / "b", inference))
    assert any("the inferer needs a roi_size" in said for said in card.missing)


def test_weights_that_are_a_link_to_a_text_are_refused_without_its_words(whole, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0\n" * 10)
    bundle = bundle_with(whole, tmp_path / "b", config())
    (bundle / "models" / "model.pt").unlink()
    (bundle / "models" / "model.pt").symlink_to(secret)
    with pytest.raises(ModelError) as refused:
        load_engine(recognise_model(bundle), EngineSettings(threads=1))
    assert "root:" not in str(refused.value)
