"""Buttons, labels, rows and tables for every page.

No width of a text is given in pixels (`table_fit`). Every control has a tooltip and an objectName:
`controls.named`. `page` is the base of pages, `drops` reads dropped paths, `inputs` reports
presses, keys and moves.
"""
