"""The layout `example`: one folder for each patient, the phases as ``t0``, ``t1`` and so on."""

LAYOUT = """
[example]
title = "Example"
image = [{path = "{patient}/t{phase:n}"}]
mask = [{path = "{patient}/tumour", name = "tumour", reference = true}]
"""
