"""The body of a phantom: torso, breasts, gland, vessels, lymph nodes, tumours.

`shapes`, `points`, `texture` and `canvas` draw; `anatomy` places the organs; each tissue has a
module.
"""
