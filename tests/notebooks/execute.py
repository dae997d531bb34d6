"""Runs the notebooks and keeps their outputs: ``python tests/notebooks/execute.py [names]``.

After a change of a notebook, or of what it shows. What differs at every run is left out: times,
counts of execution, the state of widgets (the static picture beside each widget stays).
"""

from __future__ import annotations

import os
import pathlib
import re
import sys

import nbformat
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"


def run(path: pathlib.Path, *, timeout: int = 600) -> nbformat.NotebookNode:
    """Execute a copy of a notebook in a fresh kernel of this very Python."""
    notebook = nbformat.read(path, as_version=4)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    os.environ["COLUMNS"] = "110"  # text is wrapped alike, wherever this runs
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
        store_widget_state=False,
        record_timing=False,
    )
    client.execute()
    return tidy(notebook)


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without what changes from run to run."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    count = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        cell.metadata.pop("execution", None)
        kept = []
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            data = output.get("data", {})
            if WIDGET in data:  # lives only as long as its kernel
                continue
            if kept and output.output_type == "stream" == kept[-1].output_type:
                kept[-1].text += output.text  # where a stream is cut is chance
                continue
            kept.append(output)
        cell.outputs = kept
    return notebook


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """What the code cells print and return as text, cell by cell; line numbers of libraries left out."""
    said = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            parts = [
                output.get("text") or output.get("data", {}).get("text/plain", "")
                for output in cell.outputs
            ]
            said.append(re.sub(r"\b(\w+\.py):\d+", r"\1", "\n".join(parts)))
    return said


def main(names: list[str]) -> None:
    """Run the named notebooks, or all of them, and write them back."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or any(name in path.name for name in names):
            notebook = run(path)
            nbformat.write(notebook, path)
            print(f"{path.name}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main(sys.argv[1:])
