"""The program that runs a prompt engine in its own process, possibly with another Python.

Until it is asked to open a model, it imports only the standard library and NumPy. It reads requests
from standard input and writes answers to standard output; each is a line of JSON followed by the
bytes of an array. Everything that a package prints goes to the error stream.

Server answers are decoded in this process, so that a malicious server can crash only this process.
"""

import json
import os
import struct
import sys
import zlib
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

_HEADER_BYTES = 8  # of a packed array of nnInteractive: magic, version, codec, axes, length of name
_KINDS = {"points": "point", "bbox2d": "box", "scribble": "scribble", "lasso": "outline"}


def _import_own_package(root: str) -> None:
    """Make `napari_mamamia` importable from its folder, but not the packages next to it."""
    if "napari_mamamia" in sys.modules:
        return
    try:
        import platformdirs  # noqa: F401
    except ImportError:  # our readers name the user's folders with it, but use none here
        sys.modules["platformdirs"] = ModuleType("platformdirs")
    init = Path(root, "__init__.py")
    spec = spec_from_file_location("napari_mamamia", init, submodule_search_locations=[root])
    if spec is None or spec.loader is None:
        raise ImportError(root)
    module = module_from_spec(spec)
    sys.modules["napari_mamamia"] = module
    spec.loader.exec_module(module)


def _close_network() -> None:
    """Block all network connections of this process, because a local model needs none."""

    def refuse(event: str, _arguments: Any) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            raise PermissionError("a local model makes no connections")

    sys.addaudithook(refuse)


def _load_local(order: dict[str, Any]) -> Any:
    """Return a session of nnInteractive with a model that was read purely as data.

    Our reader rejects checkpoints that contain code. The class names in the model's plans, which
    nnInteractive would import and call, are replaced from our own tables.
    """
    _close_network()
    _import_own_package(order["root"])
    import torch
    from nnInteractive.inference.inference_session import nnInteractiveInferenceSession
    from nnInteractive.interaction.point import PointInteraction_stub
    from nnunetv2.utilities.plans_handling.plans_handler import PlansManager

    from napari_mamamia.segmentation.model.nnunet_plans import parsed, read_plans
    from napari_mamamia.segmentation.nnunet.checkpoint import checkpoint_file, load_checkpoint
    from napari_mamamia.segmentation.nnunet.network import build_network, put_weights

    folder, device = Path(order["model"]), order["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    session = nnInteractiveInferenceSession(
        torch.device(device), torch_n_threads=order["threads"], verbose=False
    )
    names = ("capability", "radius", "thickness", "decay", "padding")
    read = session._load_capability_and_runtime_defaults(str(folder))
    defaults = dict(zip(names, read, strict=True))
    session._apply_capability(defaults["capability"])
    checkpoint = load_checkpoint(
        checkpoint_file(folder / f"fold_{order['fold']}", "checkpoint_final.pth")
    )
    plans_text = (folder / "plans.json").read_text("utf-8")
    data_set_text = (folder / "dataset.json").read_text("utf-8")
    plans = read_plans(plans_text, data_set_text, checkpoint.configuration, str(folder))
    n_channels = plans.inputs + session.num_interaction_channels
    network = build_network(
        plans.configuration.architecture, n_channels, 2, "nnUNetTrainer", str(folder)
    )
    put_weights(network, checkpoint)
    manager = PlansManager(parsed(plans_text, "plans.json"))
    data_set = parsed(data_set_text, "dataset.json")
    arguments = {"init_args": {"configuration": checkpoint.configuration}}
    session.initialize_from_loaded_artifacts(
        {
            "capability_content": defaults["capability"],
            "point_interaction": PointInteraction_stub(defaults["radius"], True),
            "preferred_scribble_thickness": defaults["thickness"],
            "interaction_decay": defaults["decay"],
            "pad_mode_data": defaults["padding"],
            "network": network.to(session.device),
            "plans_manager": manager,
            "configuration_manager": manager.get_configuration(checkpoint.configuration),
            "dataset_json": data_set,
            "trainer_name": checkpoint.trainer,
            "label_manager": manager.get_label_manager(data_set),
            "license": session._load_license(str(folder), manager.plans, arguments),
        }
    )
    return session


def _load_network(order: dict[str, Any]) -> Any:
    """Return a session of a TorchScript or ONNX file with a recipe, without running other code."""
    _close_network()
    _import_own_package(order["root"])
    from napari_mamamia.features.prompt.segmentation.network import NetworkSession
    from napari_mamamia.features.prompt.segmentation.recipe import read_prompt_recipe
    from napari_mamamia.segmentation.model.engine_settings import EngineSettings
    from napari_mamamia.segmentation.model.kinds import ModelKind
    from napari_mamamia.segmentation.network.arrays import open_arrays

    recipe = read_prompt_recipe(Path(order["recipe"]))
    settings = EngineSettings(device=order["device"], threads=order["threads"])
    forward = open_arrays(ModelKind(order["kind"]), Path(order["weights"]), settings)
    session = NetworkSession(recipe, forward)
    session.license = order["licence"]
    return session


def _claim_remote(order: dict[str, Any]) -> Any:
    """Claim a session on a server; the API key is not read from an environment variable."""
    # The client imports torch if it is there, which takes seconds, and does not need it.
    sys.modules["torch"] = None  # type: ignore[assignment]
    remote_session: Any = import_module("nnInteractive.inference.remote.remote_session")
    unpack = remote_session.unpack_array

    def unpack_checked(packed: bytes) -> Any:
        _check_packed(packed, order["most_voxels"]())
        return unpack(packed)

    remote_session.unpack_array = unpack_checked
    return remote_session.nnInteractiveRemoteInferenceSession(
        order["server"], api_key=order["api_key"], read_timeout=order["seconds"]
    )


def _check_packed(packed: bytes, most_voxels: int) -> None:
    """Raise `ValueError` if a packed array is not a mask that fits into the image."""
    n_axes, n_name = packed[6], packed[7]
    name = packed[_HEADER_BYTES : _HEADER_BYTES + n_name].decode("ascii", "replace")
    shape = struct.unpack_from(f"<{n_axes}q", packed, _HEADER_BYTES + n_name)
    n_voxels = 1
    for extent in shape:
        n_voxels *= extent
    if name not in ("uint8", "bool") or n_axes != 3 or min(shape) < 0 or n_voxels > most_voxels:
        raise ValueError(f"the server sent an array {shape} of {name[:20]!r} instead of a mask")


class Engine:
    """A session of nnInteractive, local or on a server, with its mask."""

    def __init__(self) -> None:
        self._session: Any = None
        self._mask = np.zeros((0, 0, 0), np.uint8)
        self._takes_spacing = False

    def open_local(self, order: dict[str, Any], _array: Any) -> dict[str, Any]:
        """Load the nnInteractive model in a folder."""
        self._session = _load_local(order)
        return self._describe()

    def open_network(self, order: dict[str, Any], _array: Any) -> dict[str, Any]:
        """Load the model that a recipe describes."""
        self._session = _load_network(order)
        self._takes_spacing = True
        return self._describe()

    def open_remote(self, order: dict[str, Any], _array: Any) -> dict[str, Any]:
        """Claim a session on a server."""
        self._session = _claim_remote({**order, "most_voxels": lambda: self._mask.size})
        return self._describe()

    def _describe(self) -> dict[str, Any]:
        session = self._session
        supported = session.supported_interactions
        return {
            "version": str(session.INFERENCE_SESSION_VERSION),
            "licence": str(session.license or ""),
            "kinds": [kind for name, kind in _KINDS.items() if supported.get(name)],
            "excluding": getattr(session, "excluding", list(_KINDS.values())),
            "boxes_3d": bool(supported.get("bbox3d")),
            "thickness": [int(n) for n in session.preferred_scribble_thickness],
            "undo": bool(session.supports_undo),
        }

    def image(self, order: dict[str, Any], array: Any) -> dict[str, Any]:
        """Set the image and start with an empty mask."""
        properties = {"spacing": order["spacing_mm"]} if self._takes_spacing else None
        self._session.set_image(array[None], properties)
        self._mask = np.zeros(array.shape, np.uint8)
        self._session.set_target_buffer(self._mask)
        return {}

    def start(self, order: dict[str, Any], array: Any) -> dict[str, Any]:
        """Forget all prompts and start from a mask."""
        if array.any():
            whole = np.zeros(self._mask.shape, np.uint8)
            whole[_slices(order["box"])] = array
            self._session.add_initial_seg_interaction(whole, run_prediction=False)
        else:
            self._session.reset_interactions()
            self._mask[...] = 0
        return {}

    def prompt(self, order: dict[str, Any], array: Any) -> tuple[dict[str, Any], Any]:
        """Return the box in which a prompt changed the mask, with the new mask in it."""
        # The refinement of nnInteractive draws from NumPy's global generator.
        np.random.seed(0)  # noqa: NPY002
        session, kind, box = self._session, order["kind"], order["box"]
        include = order["include"]
        if kind == "point":
            changed = session.add_point_interaction([low for low, _ in box], include)
        elif kind == "box":
            changed = session.add_bbox_interaction(box, include)
        elif kind == "scribble":
            changed = session.add_scribble_interaction(array, include, interaction_bbox=box)
        else:
            changed = session.add_lasso_interaction(array, include, interaction_bbox=box)
        if changed is None:
            return {"box": None}, None
        ends = [[int(low), int(high)] for low, high in changed]
        return {"box": ends}, np.ascontiguousarray(self._mask[_slices(ends)])

    def undo(self, _order: dict[str, Any], _array: Any) -> dict[str, Any]:
        """Undo the last prompt, and return the checksum of the mask."""
        is_undone = bool(self._session.undo())
        return {"undone": is_undone, "crc": zlib.crc32(self._mask.data)}


def _slices(box: list[list[int]]) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in box)


def _kind_of(error: BaseException) -> str:
    """Return the kind of a failure, which the client converts into an error."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if getattr(getattr(error, "response", None), "status_code", None) in (401, 403):
        return "key"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "certificate"
    return next((kind for name, kind in _ERROR_KINDS.items() if name in names), "other")


_ERROR_KINDS = {
    "SessionExpiredError": "expired",
    "ServerAtCapacityError": "full",
    "HTTPStatusError": "status",
    "ReadTimeout": "timeout",
    **dict.fromkeys(("TransportError", "InvalidURL"), "unreachable"),
    **{kind: kind for kind in ("MemoryError", "RefusedCheckpointError", "ModelError")},
    "ImportError": "ImportError",
    "OutOfMemoryError": "memory",
}


def _serve(source: Any, sink: IO[bytes]) -> None:
    engine = Engine()
    while line := source.readline():
        order = json.loads(line)
        array = None
        if "shape" in order:
            array = np.empty(order["shape"], order["dtype"])
            source.readinto(array.reshape(-1).view(np.uint8).data)  # no second copy of an image
        try:
            done = getattr(engine, order["do"])(order, array)
        except Exception as error:  # noqa: BLE001 - a failed request is an answer too
            text = f"{type(error).__name__}: {error}"
            done = {"error": _kind_of(error), "text": str(error), "detail": text[:500]}
        answer, result = done if isinstance(done, tuple) else (done, None)
        if result is not None:
            shown = {"shape": result.shape, "dtype": str(result.dtype), "n_bytes": result.nbytes}
            answer = {**answer, **shown}
        sink.write(json.dumps(answer).encode() + b"\n")
        if result is not None:
            sink.write(result.tobytes())
        sink.flush()


def _limit_memory(n_bytes: int) -> None:
    """Limit this process's memory if the system allows it, because a server may send too much."""
    try:
        resource: Any = import_module("resource")  # Windows has none
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    except (ImportError, OSError, ValueError):
        pass


def _check() -> None:
    """Import nnInteractive, and print its version as the last line."""
    from nnInteractive.inference.inference_session import nnInteractiveInferenceSession as Session

    sys.stdout.write(json.dumps({"version": str(Session.INFERENCE_SESSION_VERSION)}) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "check":
        _check()
    else:
        if int(sys.argv[1]):
            _limit_memory(int(sys.argv[1]))
        own_output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        _serve(sys.stdin.buffer, own_output)
