"""The SmartPaint brush: image features with their noise, stamps, and the path of a stroke."""
