"""The body of a phantom: torso, breasts, gland, vessels, lymph nodes, tumours.

`geometry` and `canvas` draw, `anatomy` describes the body, breasts and chest, `torso` the organs
and tumours, and `tissue` the properties of each tissue.
"""
