"""The running program itself: its system, the processes that it starts, its imports and memory."""
