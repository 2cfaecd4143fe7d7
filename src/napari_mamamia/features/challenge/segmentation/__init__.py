"""Networks that measures of a challenge use."""
