"""The running program: operating system, child processes, imports and memory."""
