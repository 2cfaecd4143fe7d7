"""The worker process that holds torch, its client (`client`), and their messages (`wire`)."""
