"""What `tidewolf doctor` finds out about an installation, one finding a line.

Checks run in a process of their own (`child.py`), so that a library that crashes, hangs or prints
costs one line and not the examination; `examination.py` starts that process, listens, and starts it
again behind a check that ended it. This side imports nothing but Python's own modules, and works
where numpy itself is broken.
"""

from __future__ import annotations

from tidewolf.doctor.examination import examine
from tidewolf.doctor.findings import Finding, Report

__all__ = ["Finding", "Report", "examine"]
