"""What changed between neighbouring revisions, where a schema cannot say it: one module a step, in `vocabulary`.

The module of a step is called after it, ``v2025_06_18_to_v2025_11_25``, and defines ``STEP``. Its functions are copied
into the generated adapter.
"""
