"""What every page uses: session, services, jobs, keys, layers, notices.

`session` is what is open, `service_record` the calls (tests pass fakes), `jobs` runs a job in a
thread, `layers` owns every metadata key, `keys` is the one table of keys, `turns` spreads steps
over turns of the event loop.
"""
