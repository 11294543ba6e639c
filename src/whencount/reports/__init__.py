"""Reports: a notebook that draws from the tables of a study, run and rendered to one page.

`render` and `pages.write_pages` are what the workflow calls. A notebook imports `figures`,
`sweeps`, `pieces` and their like for what it shows, `load` for the tables and `Gallery` to keep
figures as files.
"""

from __future__ import annotations

from whencount.reports.drawing import Drawing, Gallery, Table
from whencount.reports.rendering import render
from whencount.reports.tables import StudyTables, load

__all__ = ["Drawing", "Gallery", "StudyTables", "Table", "load", "render"]
