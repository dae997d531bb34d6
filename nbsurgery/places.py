"""What a line of source is called: by its file, or by the notebook's cell, which has none."""

from __future__ import annotations

import os
import sys


def place(file: str, line: int) -> str:
    """``"resnet.py:102"``, ``"cell [3], line 27"``, or ``"the emitted code, line 8"``."""
    if file.startswith("<nbsurgery"):
        return f"the emitted code, line {line}"
    number = _cell(file)
    if number is not None:
        return f"cell [{number}], line {line}" if number else f"this notebook, line {line}"
    return f"{file.replace(os.sep, '/').rpartition('/')[2]}:{line}"


def _cell(file: str) -> int | None:
    """The number of the cell whose text IPython keeps under a name; 0 where it does not know it any more."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    spell = getattr(getattr(shell, "compile", None), "format_code_name", None)
    label = spell(file) if spell is not None else None  # ("Cell", "In[3]")
    if label is not None and (number := label[1].removeprefix("In[").removesuffix("]")).isdigit():
        return int(number)
    folder, _, name = file.replace(os.sep, "/").rpartition("/")
    kept = folder.rpartition("/")[2].startswith("ipykernel_") or name.startswith("<ipython-input-")
    return 0 if kept else None
