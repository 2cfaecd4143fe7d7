"""The process that holds torch, its caller's side (`client`), and what they say (`wire`)."""
