"""Modules that every page uses: session, services, jobs, shortcuts, layers, messages.

`session` stores the open data, `service_record` lists the service calls (tests pass fakes), `jobs`
runs jobs in threads, `notify` sends messages, and `message_place` shows messages. `layers` defines
every metadata key, and `keys` holds the only table of shortcuts.
"""
