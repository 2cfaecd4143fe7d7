"""The body that a phantom has: torso, breasts, gland, vessels, nodes, tumours.

`shapes`, `points`, `texture` and `canvas` draw; `anatomy` places; each tissue has a module.
"""
