"""What the judge of adapters has to know of a registered draft: a plugin of pytest.

``SIXTH_FOLDER`` is the folder with the package of the draft. The draft is the revision of `tests.adapters.sixth`; its
document is in the schema room, and its package is not among the generated ones.
"""

from __future__ import annotations

import os
import sys

from mcpgen import register
from tests.adapters.sixth import NEW

sys.path.insert(0, os.environ["SIXTH_FOLDER"])
assert register("v2099_01_01") == NEW

from tests.adapters.sixth_judge import pytest_configure  # noqa: E402, F401 - a hook
