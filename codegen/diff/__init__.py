"""Compare two revisions: read each as an `Edition`, then `compare` them to get a `Diff`."""

from mcpgen.codegen.diff.comparison import compare
from mcpgen.codegen.diff.editions import Edition, edition
from mcpgen.codegen.diff.model import Diff, mirrored

__all__ = ["Diff", "Edition", "compare", "edition", "mirrored"]
