"""What every page uses: session, services, jobs, keys, layers, notices.

`session` is what is open, `service_record` the calls (tests pass fakes), `jobs` runs a job in a
thread, `notify` is what is said and `message_place` where it stands, `layers` owns every metadata
key, `keys` is the one table of keys, `turns` spreads steps over turns of the event loop.
"""
