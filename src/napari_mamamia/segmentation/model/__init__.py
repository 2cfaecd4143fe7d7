"""What every model shares: the `Segmenter` protocol, the card, recipe, settings, tiles, plan.

`card` is what is known of a model on the disk, `planner` its time and memory (pure), `recipe` and
`recipe_input` what happens around a network, `postprocess` after it, `device` where it runs,
`openvino` what compiles it for the processor. What is read of nnU-Net's plans stands here, because
networks in one file use it too.
"""
