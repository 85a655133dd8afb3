"""Schema document in, source text out."""
