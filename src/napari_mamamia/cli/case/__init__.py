"""Commands about cases one by one: the report of each.

They are apart because the room's folder is full.
"""
