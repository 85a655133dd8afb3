"""From two neighbouring revisions and the changes declared between them to the adapter of that step."""
