"""The declared changes between neighbouring revisions: what the diff of two schemas cannot tell. One module per step.

The module of a step is named after both revisions, ``v2025_06_18_to_v2025_11_25``, and defines ``STEP``. Its functions
are copied into the generated adapter.
"""
