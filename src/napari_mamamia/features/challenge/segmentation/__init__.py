"""Neural networks that the measures of a challenge use."""
