"""Page Cases: the list, and opening."""
