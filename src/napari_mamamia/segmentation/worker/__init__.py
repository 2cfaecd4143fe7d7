"""The worker process that runs torch, its client (`client`), and their messages (`wire`)."""
