"""Values to text, markdown, JSON and the formats of CI systems. Pure."""
