"""Inside of the command ``serve``: a log of the requests, and the restart when a file changes."""
