"""`mamamia rank`: tables of several algorithms read, ranked, and written as data for people.

`inputs` reads what was given, `rank` does all of it, `output` is what the files hold.
"""
