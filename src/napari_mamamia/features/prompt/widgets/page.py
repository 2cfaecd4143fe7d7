"""The Prompt page: the model or server, its licence, the tools, and messages."""

from dataclasses import asdict, dataclass
from enum import Enum, auto
from pathlib import Path
from types import MappingProxyType
from typing import Final

from qtpy.QtCore import QSize, Qt, Signal
from qtpy.QtGui import QIcon
from qtpy.QtWidgets import QLineEdit, QToolButton, QWidget

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.texts import tr
from napari_mamamia.features.prompt.segmentation.engine import (
    UNKNOWN_LICENCE,
    EngineInfo,
    EngineSettings,
)
from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES
from napari_mamamia.features.prompt.segmentation.prompts import PromptKind
from napari_mamamia.features.prompt.services.channels import Channel
from napari_mamamia.features.prompt.widgets.drawing import KIND_TEXTS
from napari_mamamia.services.dicom.preview import SlicePicture
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.controls.controls import (
    button,
    call_by,
    column,
    label,
    row,
    row_name,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.form import Browse, Form, option
from napari_mamamia.widgets.controls.grey_pixmap import picture_tip, square_pixmap
from napari_mamamia.widgets.controls.page import Page

_DEVICES: Final = (
    ("auto", tr("automatic"), ""),
    ("cpu", tr("processor"), ""),
    ("cuda", tr("graphics card"), ""),
)
_TIPS: Final = MappingProxyType(
    {
        PromptKind.POINT: tr("Click on a point."),
        PromptKind.BOX: tr("Drag a box on a slice, in any plane."),
        PromptKind.SCRIBBLE: tr("Draw a line on a slice, in any plane."),
        PromptKind.OUTLINE: tr("Draw around a region on a slice, in any plane."),
    }
)
_REMEDIES: Final = MappingProxyType(
    {
        "model": tr("Choose the folder under Model."),
        "fold": tr("Enter its number under Fold."),
        "environment": tr("Choose the folder under Environment."),
        "server": tr("Enter the address under Server."),
        "api_key": tr("Enter the key under Key."),
        "allow_plain_http": tr("Tick Send without encryption, if you accept that."),
        "channel": tr("Choose another image under Input image."),
        "accept_licence": tr("Accept the licence."),
    }
)
_PICTURE_SIDE: Final = 48
_ICON_SIDE: Final = 15
_REMOTE: Final = ("server", "api_key", "allow_plain_http")
_STORED: Final = ("model", "fold", "environment", "device", "server")
_ENGINE_TEXTS: Final = MappingProxyType(
    {
        "local": tr("On this computer"),
        "remote": tr("On a server (nnInteractive)"),
    }
)


class State(Enum):
    """The state of the Prompt page."""

    IDLE = auto()
    STARTING = auto()
    LICENCE = auto()
    READY = auto()
    ASKING = auto()


@dataclass(frozen=True, slots=True)
class _Options:
    """Controls for the settings of all engines; only those of the selected engine are shown."""

    model: Path | None = option(
        None,
        tr("Model"),
        "prompt_model",
        tr("Folder of the model: nnInteractive's, or a network with its recipe."),
        placeholder=tr("folder of the model"),
        browse=Browse("prompt_model_browse", tr("Choose the folder of the model"), tr("Model")),
    )
    fold: str = option(
        "",
        tr("Fold"),
        "prompt_fold",
        tr("Number of the fold, if the model has several."),
        placeholder=tr("the only one"),
    )
    environment: Path | None = option(
        None,
        tr("Environment"),
        "prompt_environment",
        tr("Python environment with nninteractive; a network with a recipe needs none."),
        placeholder="$MAMAMIA_PROMPT_ENVIRONMENT",
        browse=Browse(
            "prompt_environment_browse", tr("Choose the Python environment"), tr("Environment")
        ),
    )
    device: str = option(
        "auto",
        tr("Device"),
        "prompt_device",
        tr("Where the model runs; a processor needs tens of seconds for a prompt."),
        choices=_DEVICES,
    )
    server: str = option(
        "",
        tr("Server"),
        "prompt_server",
        tr("Address of a computer that runs nninteractive-server."),
        placeholder="https://host:1527",
    )
    api_key: str = option(
        "", tr("Key"), "prompt_api_key", tr("Key of the server; it is not stored.")
    )
    allow_plain_http: bool = option(
        False,
        "",
        "prompt_allow_plain_http",
        tr("Others on the network can then read and change the images."),
        text=tr("Send without encryption"),
    )


class PromptPage(Page):
    """The Prompt page.

    The signal `kind_wanted` carries a `PromptKind`, or None for no tool. `start_wanted`,
    `stop_wanted`, `cancel_wanted` and `accept_wanted` are emitted on clicks. `including_changed`
    carries whether prompts mark the lesion or tissue outside it.
    """

    start_wanted = Signal()
    stop_wanted = Signal()
    cancel_wanted = Signal()
    accept_wanted = Signal()
    kind_wanted = Signal(object)
    including_changed = Signal()

    def __init__(self) -> None:
        super().__init__("prompt")
        self.is_including = True
        self.engine = combo_box("prompt_engine", tr("Where the prompt model runs."))
        for name, spec in PROMPT_ENGINES.items():
            self.engine.addItem(_ENGINE_TEXTS.get(name, spec.text), name)
        self.form = Form(_Options, [tr("Environment")])
        self.fields = self.form.fields
        self.fields["api_key"].setEchoMode(QLineEdit.EchoMode.Password)
        self.form.rows["allow_plain_http"].hide()
        self.leaving = label("prompt_leaving", tip=tr("Data sent from this computer"))
        self.channel = combo_box("prompt_channel", tr("The image that the model sees."))
        self.start = button(
            "prompt_start",
            tr("Start the model"),
            tr("Loads the model or connects to the server, and sends the image to it."),
            self.start_wanted.emit,
            primary=True,
        )
        self.stop = button(
            "prompt_stop",
            tr("Stop the model"),
            tr("Stops the model and keeps your mask."),
            self.stop_wanted.emit,
        )
        self.setup = column(
            row(row_name(tr("Runs on"), [tr("Environment")]), self.engine, 1),
            *self.form.rows.values(),
            row(row_name(tr("Input image"), [tr("Environment")]), self.channel, 1),
            self.leaving,
        )
        self.licence = self._make_licence()
        self.tools = self._make_tools()
        self.state = label("prompt_state", tip=tr("State of the prompt model, or the problem."))
        self.cancel = button(
            "prompt_cancel",
            tr("Cancel"),
            tr("Stops waiting for the model and keeps your mask."),
            self.cancel_wanted.emit,
        )
        buttons = (self.start, self.cancel, self.stop)
        # The stretch keeps the parts together at the top: which are shown depends on the state.
        self.add_form(column(self.setup, self.licence, self.tools, self.state, *buttons, 1))
        self.body.addStretch()
        self.engine.currentIndexChanged.connect(lambda _at: self._follow_choice())
        self.form.changed.connect(self._follow_choice)
        self._follow_choice()
        self.say("")
        self.show_state(State.IDLE)

    # ------------------------------------------------------------- for the flow

    @property
    def engine_name(self) -> str:
        """Return the name of the selected engine."""
        return str(self.engine.currentData())

    @property
    def settings(self) -> EngineSettings:
        """Return the settings of the selected engine."""
        return EngineSettings(**asdict(self.form.settings()))

    @property
    def storable(self) -> dict[str, str]:
        """Return the settings of the selected engine that are stored for the next session."""
        rows, settings = self.form.rows, self.settings
        return {n: str(getattr(settings, n) or "") for n in _STORED if not rows[n].isHidden()}

    def show_stored(self, stored: dict[str, str]) -> None:
        """Fill in the settings stored in an earlier session."""
        self.engine.setCurrentIndex(max(self.engine.findData(stored.get("engine")), 0))
        devices = self.fields["device"]
        for name in _STORED:
            if name != "device":
                self.fields[name].setText(stored.get(name, ""))
        devices.setCurrentIndex(max(devices.findData(stored.get("device")), 0))

    def show_channels(
        self, channels: tuple[Channel, ...], pictures: tuple[SlicePicture, ...] = ()
    ) -> None:
        """Offer each image of a case, with the default first; an existing selection is kept."""
        before = self.channel.currentData()
        self.channel.clear()
        for index, channel in enumerate(channels):
            if self.channel.findText(channel.text) >= 0:
                continue
            self.channel.addItem(channel.text, channel.name)
            if pictures:
                row, picture = self.channel.count() - 1, pictures[index]
                self.channel.setItemIcon(row, QIcon(square_pixmap(picture, _PICTURE_SIDE)))
                tip = picture_tip(picture, channel.text)
                self.channel.setItemData(row, tip, Qt.ItemDataRole.ToolTipRole)
        small, large = (_ICON_SIDE, _PICTURE_SIDE) if pictures else (0, 0)
        self.channel.setIconSize(QSize(small, small))
        self.channel.view().setIconSize(QSize(large, large))  # in the open list
        self.channel.setCurrentIndex(max(self.channel.findData(before), 0))

    def show_state(self, state: State, info: EngineInfo | None = None) -> None:
        """Show the controls for a state; `info` describes the model."""
        is_on = state in (State.READY, State.ASKING)
        self.setup.setVisible(state in (State.IDLE, State.STARTING))
        self.setup.setEnabled(state is State.IDLE)
        self.start.setVisible(state is State.IDLE)
        self.stop.setVisible(is_on or state is State.LICENCE)
        self.cancel.setVisible(state in (State.STARTING, State.ASKING))
        self.licence.setVisible(state is State.LICENCE)
        self.tools.setVisible(is_on)
        if info is None:
            return
        for kind, control in self.kinds.items():
            control.setVisible(kind in info.abilities.kinds)
        self.model.setText(
            tr("{name} sees {channel}.", name=info.name, channel=self.channel.currentText())
        )
        licence = info.licence
        if licence == UNKNOWN_LICENCE:
            licence = tr("not stated: ask the authors of the model")
        self.licence_text.setText(
            tr(
                "Licence of the model: {licence}. The licence may also apply to masks made with "
                "the model. It is stored with each mask.\n{model}",
                licence=licence,
                model=f"{info.name}, {info.model}",
            )
        )

    def show_kind(self, kind: PromptKind | None) -> None:
        """Show the active tool."""
        for each, control in self.kinds.items():
            control.setChecked(each is kind)

    def say(self, text: str, level: str = "hint") -> None:
        """Show a message."""
        set_level(self.state, level)
        self.state.setText(text)
        self.state.setVisible(bool(text))

    def show_error(self, error: Exception) -> None:
        """Show an error, and the controls with which the user can fix it."""
        remedies = error.remedies if isinstance(error, MamamiaError) else ()
        names = [remedy.option for remedy in remedies]
        if "allow_plain_http" in names:
            self.form.rows["allow_plain_http"].show()
        text = plain_text(error)
        lines = [f"{text[0].upper()}{text[1:]}.", *(_REMEDIES.get(name, "") for name in names)]
        self.say("\n".join(line for line in lines if line), "error")

    # -------------------------------------------------------------------- inner

    def _make_licence(self) -> QWidget:
        self.licence_text = label("prompt_licence", tip=tr("The licence of the model's weights."))
        self.accept = button(
            "prompt_accept",
            tr("Accept the licence"),
            tr("Records that you accept the licence of this model, and starts the model."),
            self.accept_wanted.emit,
            primary=True,
        )
        return column(self.licence_text, self.accept)

    def _make_tools(self) -> QWidget:
        self.model = label("prompt_info", tip=tr("The model, and the image that it sees."))
        self.kinds: dict[PromptKind, QToolButton] = {
            kind: self._make_choice(f"prompt_{kind.value}", KIND_TEXTS[kind], _TIPS[kind], kind)
            for kind in PromptKind
        }
        self.signs = {
            True: self._make_choice(
                "prompt_include",
                tr("+ Lesion"),
                tr("Prompts mark the lesion; the right button marks areas outside it."),
                True,
            ),
            False: self._make_choice(
                "prompt_exclude",
                tr("− Not lesion"),
                tr("Prompts mark areas outside the lesion; the right button marks the lesion."),
                False,
            ),
        }
        self.signs[True].setChecked(True)
        text = tr("The right button swaps + and −. Undo removes the last prompt")
        self.hint = label("prompt_hint", with_key(text, "undo"), tr("How to use the tools."))
        rows = row(*self.kinds.values(), 1), row(*self.signs.values(), 1)
        return column(self.model, *rows, self.hint)

    def _make_choice(self, name: str, text: str, tip: str, value: PromptKind | bool) -> QToolButton:
        control: QToolButton = tool_button(name, text, tip, lambda: self._choose(value))
        control.setCheckable(True)
        control.setProperty("framed", True)
        call_by(control, text)
        return control

    def _choose(self, value: PromptKind | bool) -> None:
        if isinstance(value, PromptKind):
            self.kind_wanted.emit(value if self.kinds[value].isChecked() else None)
            return
        self.is_including = value
        for sign, control in self.signs.items():
            control.setChecked(sign is value)
        self.including_changed.emit()

    def _follow_choice(self) -> None:
        """Show the controls of the selected engine, and which data leave this computer."""
        is_remote = self.engine_name == "remote"
        for name, line in self.form.rows.items():
            if name != "allow_plain_http":
                line.setVisible((name in _REMOTE) == is_remote)
        if not is_remote:
            self.form.rows["allow_plain_http"].hide()
        settings = self.settings
        text = tr("No data are sent from this computer.")
        if is_remote and not settings.server:
            text = tr("The image, your prompts and your mask are sent to the server, but no names.")
        elif spec := PROMPT_ENGINES.get(self.engine_name):
            text = spec.leaves(settings) or text
        self.leaving.setText(text)
        set_level(self.leaving, "warning" if is_remote else "hint")
