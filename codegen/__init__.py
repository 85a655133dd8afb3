"""Generate source text from a schema document."""
