"""The running program: its operating system, child processes, imports and memory."""
