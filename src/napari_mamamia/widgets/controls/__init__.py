"""Buttons, labels, rows and tables for every page.

Text widths are never specified in pixels (see `table_fit`). Every control has a tooltip and an
objectName, set by `controls.named`. `page` is the base class of pages, `drops` reads dropped paths,
and `inputs` reports mouse presses, keys and mouse moves.
"""
