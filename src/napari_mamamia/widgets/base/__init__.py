"""Modules that every page uses: session, services, jobs, keys, layers, messages.

`session` holds the open data, `service_record` the service calls (tests pass fakes), `jobs` runs a
job in a thread, `notify` sends messages and `message_place` shows them, `layers` owns every
metadata key, `keys` is the only table of keys, `turns` spreads steps over event-loop iterations.
"""
