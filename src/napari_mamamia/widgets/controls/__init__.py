"""Buttons, labels, rows and tables as every page has them.

No width of a text is written in pixels (`table_fit`). Every control has a tooltip and an
objectName: `controls.named`. `page` is what a page is, `drops` what a drop carries, `inputs`
tells of presses, keys and moves.
"""
