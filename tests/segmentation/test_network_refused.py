"""Networks in a single file that are refused, each with what it is and what to do."""

import importlib.util
import json
import os
import pickle
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.halves import third_by_day

from napari_mamamia.core.errors import CaseError, MissingExtraError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model import device
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.network_spec import network_from
from napari_mamamia.segmentation.model.planner import LADDER, Rung
from napari_mamamia.segmentation.model.recipe import read_recipe, recipe_from, recipe_text
from napari_mamamia.segmentation.network.choices import rungs_of
from napari_mamamia.segmentation.network.onnx import read_onnx
from napari_mamamia.segmentation.run.engines import load_engine
from napari_mamamia.segmentation.run.registry import (
    add_model,
    find_model,
    list_models,
    verify_model,
)
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.worker.wire import card_from, card_on_wire
from napari_mamamia.services.predict.model_choice import RunChoices, open_model

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
for package in ("dynamic_network_architectures", "safetensors", "onnxruntime", "openvino"):
    pytest.importorskip(package)

_FOUND = importlib.util.spec_from_file_location(
    "network_made", Path(__file__).with_name("network_made.py")
)
made = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(made)

GRID = Grid(made.PATCH, np.diag([-1.0, -1.0, 1.0, 1.0]))
ONE = EngineSettings(threads=1)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return made.exported(made.Tiny(), tmp_path_factory.mktemp("pt2") / "net.pt2")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return made.onnx_file(made.Tiny(), tmp_path_factory.mktemp("onnx") / "net.onnx")


@pytest.fixture
def script(tmp_path):
    return made.scripted(made.Tiny(), made.recipe(tmp_path / "script") / "net.pt").parent


def load(folder, settings=ONE):
    return load_engine(recognise_model(folder), settings)


def run(folder, arrays=None, settings=ONE):
    engine = load(folder, settings)
    return engine.predict(EngineInput(made.volumes(made.PATCH) if arrays is None else arrays, GRID))


def placed(source, folder, **changes):
    """Copy a network into a folder with a recipe."""
    made.recipe(folder, made.section(**changes))
    (folder / source.name).write_bytes(source.read_bytes())
    return folder


def edited(program, folder, change, extra=()):
    """Write a torch.export file with another model.json, and further members."""
    made.recipe(folder)
    with zipfile.ZipFile(program) as old, zipfile.ZipFile(folder / "net.pt2", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("/models/model.json"):
                found = json.loads(data)
                change(found)
                data = json.dumps(found).encode()
            replaced = dict(extra).get(name.partition("/")[2])
            new.writestr(name, data if replaced is None else replaced)
        top = old.namelist()[0].split("/")[0]
        for name, data in extra:
            if f"{top}/{name}" not in old.namelist():
                new.writestr(f"{top}/{name}", data)
    return folder


class Payload:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


# ------------------------------------------------------------------------------- safety


@pytest.mark.parametrize(
    "place",
    third_by_day(
        ["data/weights/model.pt", "data/sample_inputs/model.pt", "data/constants/model.pt"]
    ),
)
def test_a_pickle_in_an_exported_file_is_never_opened(place, program, tmp_path):
    mark = tmp_path / "was-here"
    folder = edited(program, tmp_path / "m", lambda _: None, [(place, pickle.dumps(Payload(mark)))])
    run(folder)
    assert not mark.exists()
    if place == "data/sample_inputs/model.pt":  # the payload is real: torch's own loader runs it
        with suppress(Exception):
            torch.export.load(folder / "net.pt2")
        assert mark.exists()


@pytest.mark.parametrize("what", ["weights", "constants"])
def test_pickled_numbers_in_an_exported_file_are_refused_by_name(what, program, tmp_path):
    mark = tmp_path / "was-here"
    file = "opaque_obj_0" if what == "constants" else "weight_0"
    config = {"config": {"evil": {"path_name": file, "is_param": False, "use_pickle": True,
                                  "tensor_meta": None}}}  # fmt: skip
    extra = [
        (f"data/{what}/model_{what}_config.json", json.dumps(config).encode()),
        (f"data/{what}/{file}", pickle.dumps(Payload(mark))),
    ]
    folder = edited(program, tmp_path / "m", lambda _: None, extra)
    with pytest.raises(ModelError, match=rf"'evil' is a pickled object \({file}\)"):
        load(folder)
    assert not mark.exists()


@pytest.mark.parametrize(
    "target",
    ["torch.os.mkdir", "torch.hub.load", "_operator.methodcaller", "math.sqrt",
     "torch.ops.aten.from_file.default", "torch.ops.aten.__class__.mro", "torch.ops.rprim.philox",
     "torch.ops.aten.relu.default.__call__"],
)  # fmt: skip
def test_a_step_that_is_no_operator_of_aten_is_refused_by_name(target, program, tmp_path):
    def change(found):
        found["graph_module"]["graph"]["nodes"][0]["target"] = target

    with pytest.raises(ModelError, match=rf"but it has '{target}'; nothing was run"):
        load(edited(program, tmp_path / "m", change))


def test_expressions_and_guards_of_an_exported_file_are_never_evaluated(program, tmp_path):
    mark = tmp_path / "was-here"
    evil = f"__import__('os').mkdir({str(mark)!r})"

    def change(found):
        graph = found["graph_module"]["graph"]
        user = next(
            s["user_input"] for s in found["graph_module"]["signature"]["input_specs"]
            if "user_input" in s
        )["arg"]["as_tensor"]["name"]  # fmt: skip
        sizes = graph["tensor_values"][user]["sizes"]
        sizes[2] = {"as_expr": {"expr_str": evil, "hint": {"as_int": 8}}}
        found["guards_code"] = [evil]

    run(edited(program, tmp_path / "m", change))
    assert not mark.exists()


class _Same(torch.nn.Module):
    def forward(self, x):
        return x


def rewritten(source, target, change):
    """Write a zip again; `change` gets each member's name and bytes."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(*change(name, old.read(name)))
    return target


def calling(tmp_path, call, name=lambda name: name):
    """Return a TorchScript file whose code has one more line, its members renamed."""
    plain = made.scripted(_Same(), tmp_path / "plain.pt")

    def change(member, data):
        if member.endswith(".py"):
            before, found, after = data.rpartition(b"    return ")
            data = before + f"    _0 = {call}\n".encode() + found + after
            member = name(member)
        return member, data

    return rewritten(plain, tmp_path / "net.pt", change)


SAVE = 'torch.save(x, "FILE")'


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (SAVE, str),
        ('ops.aten.save(x, "FILE")', str),
        ('(torch.save # no call\n    (x, "FILE"))', str),
        (SAVE, lambda name: name.replace("/code/", "/CODE/")),
        (SAVE, lambda name: name.replace(".py", ".PY")),
    ],
    ids=["plain", "operator", "comment between", "folder in upper case", "suffix in upper case"],
)
@pytest.mark.parametrize("place", ["alone", "bundle"])
def test_torchscript_that_names_an_operator_for_files_is_not_opened(call, name, place, tmp_path):
    from napari_mamamia.segmentation.bundle.engine import load_network
    from napari_mamamia.segmentation.network.script import read_script

    mark = tmp_path / "was-here"
    file = calling(tmp_path, call.replace("FILE", str(mark)), name)
    read = read_script
    if place == "bundle":
        pytest.importorskip("monai")
        file = file.rename(tmp_path / "model.ts")
        read = lambda path: load_network(path, None, "here")  # noqa: E731
    with pytest.raises(ModelError, match=r"calls torch\.save, so it was neither opened"):
        read(file)
    torch.jit.load(str(file))(torch.zeros(2))  # the trap is real
    assert mark.exists()


def test_torchscript_with_foreign_classes_or_of_an_old_form_is_not_opened(tmp_path):
    from napari_mamamia.segmentation.network import script as network_script

    made_up = calling(tmp_path, 'torch.classes.dist_rpc.WorkerInfo("a", 1)')
    with pytest.raises(ModelError, match="calls classes of dist_rpc, so it was neither opened"):
        network_script.read_script(made_up)
    with zipfile.ZipFile(made_up, "a") as archive:
        top = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{top}/Model.json", "{}")
    with pytest.raises(ModelError, match=r"the format of torch before 1\.1"):
        network_script.read_script(made_up)


@pytest.mark.parametrize("name", ["net.pt", "net.pt2"])
def test_a_network_that_unpacks_to_much_more_than_it_is_is_not_opened(name, program, tmp_path):
    folder = made.recipe(tmp_path / "m")
    source = program if name == "net.pt2" else made.scripted(_Same(), tmp_path / "plain.pt")
    (folder / name).write_bytes(source.read_bytes())
    with zipfile.ZipFile(folder / name, "a", zipfile.ZIP_DEFLATED) as archive:
        top = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{top}/code/bomb.py", bytes(80 * 2**20))
    with pytest.raises(ModelError, match=r"but it would unpack to 0\.08 GB"):
        load(folder)


@pytest.mark.parametrize("header", [{"__metadata__": {"mamamia_network": "[" * 200_000}}, None])
def test_a_safetensors_header_that_promises_or_nests_too_much_is_refused(header, tmp_path):
    if header is None:  # ten gigabytes of numbers in a file of some bytes
        header = {"a": {"dtype": "F32", "shape": [50_000, 50_000], "data_offsets": [0, 10**10]}}
    text = json.dumps(header).encode()
    folder = made.recipe(tmp_path / "m", made.section(architecture=made.unet_architecture()))
    if "__metadata__" in header:
        (folder / "mamamia_model.json").unlink()
    (folder / "net.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(100))
    with pytest.raises(ModelError, match="to be"):
        load(folder)


def test_onnx_weights_that_promise_more_than_the_file_has_are_refused(graph, tmp_path):
    folder = placed(graph, tmp_path / "m")
    model = onnx.load(folder / "net.onnx")
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([50_000, 50_000])  # ten gigabytes in single precision
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"ONNX Runtime .* cannot open"):
        load(folder)


@pytest.mark.parametrize(
    ("location", "reason"),
    [("../weights.data", "is outside that folder"), ("/etc/passwd", "is outside that folder"),
     ("C:\\weights", "is outside that folder"), ("absent.data", "copy the weights too"),
     ("link.data", "link that points outside the folder")],
)  # fmt: skip
def test_weights_of_onnx_that_do_not_lie_beside_it_are_refused(location, reason, graph, tmp_path):
    outside = tmp_path / "weights.data"
    outside.write_bytes(bytes(10_000))
    folder = placed(graph, tmp_path / "m")
    (folder / "link.data").symlink_to(outside)
    model = onnx.load(folder / "net.onnx")
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    card = recognise_model(folder)
    assert reason in card.missing[0]
    with pytest.raises(ModelError, match=r"net\.onnx"):
        load(folder)


def test_operators_of_another_program_in_onnx_are_refused_by_their_domain(graph, tmp_path):
    folder = placed(graph, tmp_path / "m")
    model = onnx.load(folder / "net.onnx")
    model.graph.node[0].domain = "evil.ops"
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    assert "uses operators from evil.ops" in recognise_model(folder).missing[0]


@pytest.mark.parity
def test_an_onnx_file_is_read_as_onnx_itself_reads_it(tmp_path):
    path = made.onnx_file(made.unet(), tmp_path / "net.onnx", dynamic=True)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
    model = onnx.load(path, load_external_data=False)
    stored = {one.name for one in model.graph.initializer}
    facts = read_onnx(path)
    assert facts.external == ("net.data",)
    assert facts.domains == ()
    for found, wanted in ((facts.inputs, model.graph.input), (facts.outputs, model.graph.output)):
        assert found == tuple(
            (one.name, tuple(d.dim_value or None for d in one.type.tensor_type.shape.dim))
            for one in wanted
            if one.name not in stored
        )


# ------------------------------------------------------------------------- what is missing


def test_a_network_without_a_recipe_is_recognised_and_says_what_it_needs(graph):
    card = recognise_model(graph)
    assert card.kind is ModelKind.ONNX
    assert (
        "the names of the channels, the labels with their values, the size of a tile"
        in card.missing[0]
    )
    example = "{" + card.missing[0].split("for example ")[1] + "}"
    assert network_from(json.loads(example)["network"], "it").patch == (64, 128, 128)
    with pytest.raises(ModelError, match="does not describe its input and output"):
        load(graph)


def test_a_checkpoint_of_torch_says_what_it_is_and_what_to_do(tmp_path):
    torch.save({"state_dict": {"a": torch.zeros(2)}}, tmp_path / "new.pt")
    torch.save(made.Tiny().state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for name in ("new.pt", "old.pt"):
        card = recognise_model(tmp_path / name)
        assert card.kind is ModelKind.CHECKPOINT
        assert "that torch.save wrote, not a network" in card.missing[0]


def test_two_networks_beside_one_recipe_are_not_guessed_between(graph, tmp_path):
    folder = placed(graph, tmp_path / "m")
    (folder / "other.onnx").write_bytes(graph.read_bytes())
    assert "found 2: net.onnx, other.onnx" in recognise_model(folder).missing[0]
    assert (
        "not clear which network the recipe describes"
        in recognise_model(folder / "net.onnx").missing[0]
    )


def test_an_ir_without_its_weights_is_refused(graph, tmp_path):
    folder = made.recipe(tmp_path / "m")
    made.ir_file(graph, folder / "net.xml")
    (folder / "net.bin").unlink()
    assert "weights net.bin" in recognise_model(folder).missing[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"channels": ["one"]}, "describes 1 channel, but the network has 2"),
        ({"labels": {"tumour": 1}}, "describes 2 outputs, but the network has 3"),
        ({"patch": [16, 8, 8]}, "takes, 8 x 8 x 8 (fixed when it was exported)"),
        ({"architecture": {"network_class_name": "a", "arch_kwargs": {},
                           "_kw_requires_import": []}}, "contains the network itself"),
    ],
)  # fmt: skip
def test_a_recipe_that_contradicts_the_file_is_refused(change, reason, graph, tmp_path):
    assert reason in recognise_model(placed(graph, tmp_path / "m", **change)).missing[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"patch": [8, 8]}, "set the patch and channels"),
        ({"labels": {"tumour": 1}}, "correct labels, output or patch"),
        ({"output": "probabilities"}, 'set "output": "logits" if these are logits'),
        ({"patch": [2, 2, 2, 2]}, "2 or 3 extents"),
        ({"channels": ["a"]}, "set the patch and channels"),
    ],
)
def test_a_recipe_that_contradicts_a_silent_file_is_refused_at_the_first_tile(
    change, reason, script, tmp_path
):
    folder = placed(script / "net.pt", tmp_path / "m", **change)
    channels = len(change.get("channels", made.CHANNELS))
    with pytest.raises(ModelError, match=reason):
        run(folder, made.volumes(made.PATCH)[:channels])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"labels": {"a": 1, "b": 1}}, "different values"),
        ({"labels": {"a": 0}}, "different values from 1 to 65535"),
        ({"labels": {}}, "1 to 1000 labels"),
        ({"threshold": 0.4}, "a threshold needs independent outputs"),
        ({"output": "label logits", "threshold": 1.0}, "between 0 and 1"),
        ({"orientation": "RAR"}, "three letters"),
        ({"orientation": "RA"}, "three letters"),
        ({"mirror_axes": [3]}, "different axes from 0 to 2"),
        ({"mirror_axes": [0, 0]}, "different axes from 0 to 2"),
        (
            {"weight": "round"},
            "'network.weight' of .* to be one of gaussian, constant, but found",
        ),
        ({"output": "numbers"}, "'network.output' of .* to be one of logits"),
        ({"shape": 3}, r"the unknown key shape"),
    ],
)
def test_a_wrong_section_is_refused_with_the_reason(change, reason, tmp_path):
    made.recipe(tmp_path, made.section(**change))
    with pytest.raises(ModelError, match=reason):
        read_recipe(tmp_path / "mamamia_model.json")


def test_a_section_that_lacks_what_the_file_cannot_say_is_refused():
    text = {"format": "napari-mamamia recipe", "version": 1, "network": {"channels": ["a"]}}
    with pytest.raises(
        ModelError, match=r"'network\.labels' of recipe to be present, but found nothing"
    ):
        recipe_from(json.dumps(text), "recipe")


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"folds": ["0"]}, "no folds"), ({"mirroring": True}, "mirror_axes are empty"),
     ({"tumour_labels": [2]}, r"but the network has no labels \[2\]")],
)  # fmt: skip
def test_a_recipe_that_asks_a_network_for_what_it_has_not_is_refused(change, reason, tmp_path):
    made.recipe(tmp_path, **change)
    with pytest.raises(ModelError, match=reason):
        read_recipe(tmp_path / "mamamia_model.json")


def test_every_word_of_a_section_comes_back_from_its_text(tmp_path):
    said = made.section(
        output="label logits", threshold=0.25, weight="constant", orientation="RAS",
        mirror_axes=[0, 2], architecture=made.unet_architecture(),
    )  # fmt: skip
    made.recipe(tmp_path, said, title="mine")
    recipe = read_recipe(tmp_path / "mamamia_model.json")
    assert json.loads(recipe_text(recipe))["network"] == said
    assert recipe_from(recipe_text(recipe), "again") == recipe


# ------------------------------------------------------------------------------ bad files


@pytest.mark.parametrize("keep", [0.5, 0.95])
@pytest.mark.parametrize("name", ["net.pt", "net.pt2", "net.onnx", "net.safetensors"])
def test_a_file_that_is_cut_off_is_refused(name, keep, program, graph, script, tmp_path):
    folder = made.recipe(tmp_path / "m")
    source = {"net.pt": script / "net.pt", "net.pt2": program, "net.onnx": graph}.get(name)
    if source is None:
        from safetensors.torch import save_file

        made.recipe(folder, made.section(architecture=made.unet_architecture()))
        source = tmp_path / name
        save_file({n: v.clone() for n, v in made.unet().state_dict().items()}, source)
    data = source.read_bytes()
    (folder / name).write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ModelError, match=r"complete|recognised|read|contains"):
        load_engine(recognise_model(folder), ONE)


def test_weights_that_do_not_fit_the_network_of_the_recipe_are_refused(tmp_path):
    from safetensors.torch import save_file

    folder = made.recipe(tmp_path, made.section(architecture=made.unet_architecture()))
    save_file({"strange": torch.zeros(3)}, folder / "net.safetensors")
    with pytest.raises(ModelError, match="has also strange"):
        load(folder)


def test_a_network_that_is_not_on_the_list_is_not_imported(tmp_path):
    from safetensors.torch import save_file

    built = {**made.unet_architecture(), "network_class_name": "os.system"}
    folder = made.recipe(tmp_path, made.section(architecture=built))
    save_file({"a": torch.zeros(3)}, folder / "net.safetensors")
    with pytest.raises(ModelError, match=r"it is 'os\.system'; nothing was imported"):
        load(folder)


class _Odd(torch.nn.Module):
    def __init__(self, what):
        super().__init__()
        self.what = what

    def forward(self, x):
        if self.what == "nan":
            return torch.cat([x, x[:, :1]], dim=1) / 0.0 * 0.0
        return x


class _Two(torch.nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("module", "reason"),
    [(_Odd("nan"), "NaN or infinite; the weights"), (_Odd("plain"), "returns 1 x 2 x 8 x 8 x 8"),
     (_Two(), "returns 2 results")],
)  # fmt: skip
def test_outputs_that_cannot_be_used_are_refused(module, reason, tmp_path):
    folder = made.recipe(tmp_path)
    made.scripted(module, folder / "net.pt")
    with pytest.raises(ModelError, match=reason):
        run(folder)


def test_channels_that_do_not_fit_are_refused(script):
    with pytest.raises(ModelError, match=r"network's 2 channels \(pre, post\), but got 1"):
        run(script, made.volumes(made.PATCH)[:1])
    zeros = [np.zeros(made.PATCH, np.float32)] * 2
    with pytest.raises(CaseError, match="every voxel of the input is zero"):
        run(script, zeros)
    broken = [*made.volumes(made.PATCH)[:1], np.full(made.PATCH, np.nan, np.float32)]
    with pytest.raises(CaseError, match="channel post to be finite"):
        run(script, broken)


# ----------------------------------------------------------------------------- choices


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        (RunChoices(folds=("0",)), r"so folds 0 cannot be used"),
        (RunChoices(backend="torch"), "which torch cannot run"),
        (RunChoices(fast=True, device="mps"), "cannot run in bf16"),
    ],
)
def test_a_choice_that_would_be_passed_over_is_refused(choices, reason, graph, tmp_path):
    with pytest.raises(ModelError, match=reason):
        open_model(str(placed(graph, tmp_path / "m")), choices, None)


@pytest.mark.parametrize("device_name", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused(device_name, graph, tmp_path):
    folder = placed(graph, tmp_path / "m")
    with pytest.raises(ModelError, match=f"device {device_name} was chosen"):
        load(folder, replace(ONE, device=device_name))
    with pytest.raises(ModelError, match="OpenVINO runs only on the CPU here"):
        load(folder, replace(ONE, device=device_name, backend="openvino"))


def test_a_missing_package_is_named_with_its_extra(graph, tmp_path, monkeypatch):
    folder = placed(graph, tmp_path / "m")
    there = importlib.util.find_spec
    absent = lambda name: None if name == "onnxruntime" else there(name)  # noqa: E731
    monkeypatch.setattr(device.importlib.util, "find_spec", absent)
    with pytest.raises(MissingExtraError, match="onnx"):
        load(folder)


def test_bf16_is_no_rung_of_the_ladder_for_onnx_runtime(graph, script, tmp_path):
    card = recognise_model(placed(graph, tmp_path / "m"))
    assert Rung.PRECISION not in rungs_of(card, ONE, LADDER)
    assert rungs_of(card, replace(ONE, backend="openvino"), LADDER) == LADDER
    assert rungs_of(recognise_model(script), ONE, LADDER) == LADDER


def test_a_network_is_added_listed_verified_and_changes_are_noticed(graph, tmp_path):
    folder, registry = placed(graph, tmp_path / "m"), tmp_path / "registry"
    entry = add_model(folder / "net.onnx", registry, "mine")
    assert list_models(registry)[0].card.network == entry.card.network
    assert verify_model(find_model("mine", registry)).is_whole
    (folder / "net.onnx").write_bytes(graph.read_bytes() + b"\x00")
    assert not verify_model(entry).is_whole


def test_a_recipe_of_ones_own_can_describe_a_network_that_has_none(graph, tmp_path):
    own = made.recipe(tmp_path / "own") / "mamamia_model.json"
    with pytest.raises(ModelError, match="does not describe its input"):
        find_model(str(graph), tmp_path)
    entry = find_model(str(graph), tmp_path, str(own))
    assert entry.card.channels == ("pre", "post")
    segmenter = open_model(str(graph), RunChoices(recipe=str(own)), None)
    assert segmenter.channels() == (("pre", "p0"), ("post", "p1"))
    sent = json.loads(json.dumps(card_on_wire(segmenter.card)))
    assert card_from(sent).network == segmenter.card.network


def test_a_model_of_another_kind_refuses_a_network_in_its_recipe(made_nnunet, tmp_path):
    made.recipe(made_nnunet)
    with pytest.raises(ModelError, match='remove the section "network" from its recipe'):
        find_model(str(made_nnunet), tmp_path)


@pytest.fixture
def made_nnunet(request, tmp_path):
    models = request.getfixturevalue("made")
    return models.write_model(tmp_path, models.Spec())
