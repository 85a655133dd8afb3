"""Generate the adapter of each step from two neighbouring revisions and the changes declared between them."""
