"""The way that napari takes thousands of times in each test of a window, shortened: same answers.

Each layer connects some 60 events and each step sets a dozen values. `make night` and what tests
start as programs of their own have napari as it is.
"""

import types
from contextlib import contextmanager, nullcontext

import pytest
from napari.components import Dims
from napari.utils.events.event import EmitterGroup, EventEmitter
from napari.utils.events.evented_model import EventedModel
from pydantic import BaseModel


@pytest.fixture(scope="session", autouse=True)
def napari_by_day(request):
    """Let napari take the shorter way, but at night."""
    with nullcontext() if request.config.option.markexpr == "night" else quick_napari():
        yield


@pytest.fixture(scope="session", autouse=True)
def accepting_at_once():
    """Let tests accept a case as soon as it is displayed; test_accepting sets the time itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napari_mamamia.widgets.refine.accepting.LOOK_MS", 0)
        yield


@contextmanager
def quick_napari():
    """Let napari look up by dictionaries what it works out anew: a fifth of a dock test's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventEmitter, "_check_signature", staticmethod(_taking_event()))
        # `in` would go through all names of a group
        patch.setattr(EmitterGroup, "__contains__", _holds, raising=False)
        patch.setattr(EventedModel, "__getattr__", _private_first, raising=False)
        patch.setattr(Dims, "__setattr__", _set_other, raising=False)
        yield


def _taking_event():
    """Return napari's look at whether a function takes an event, which remembers its answers."""
    known, look = {}, EventEmitter._check_signature

    def takes_event(function):
        plain = function.__func__ if isinstance(function, types.MethodType) else function
        if type(plain) in (EventEmitter, EmitterGroup):
            key = type(plain)
        elif type(plain) is types.FunctionType and not vars(plain):  # a wrapper's tell of another
            key = (plain.__code__, plain is function, len(plain.__defaults__ or ()))
        else:
            return look(function)
        if key not in known:
            known[key] = look(function)
        return known[key]

    return takes_event


def _holds(group, name):
    return name in group._emitters


def _private_first(model, name):
    """Return a model's private value without asking whether it were a descriptor: none is."""
    try:
        return object.__getattribute__(model, "__pydantic_private__")[name]
    except (AttributeError, KeyError, TypeError):
        return BaseModel.__getattr__(model, name)


def _set_other(dims, name, value):
    """Set what is new alone, where dims look at all that they hold, once for each value set."""
    fields, private = vars(dims), dims.__pydantic_private__ or {}
    if private.get("_validating") and name in fields and fields[name] == value:
        return
    EventedModel.__setattr__(dims, name, value)
