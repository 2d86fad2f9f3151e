"""Print every speed ratio against its goal.

python -m benchmarks.ratios [family ...]
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

NOT_FAMILIES = {"__init__", "dask_chunks", "growth", "ratios", "rules", "timing"}


def main(families: list[str]) -> None:
    """Measure the named families, all of them by default."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    table = Table(
        "workload", "peer", "ratio", "goal", "", title="CPU time, ours / peer"
    )
    console = Console()
    for family in families or [name for name in files if name not in NOT_FAMILIES]:
        with threadpool_limits(limits=1):
            for workload in import_module(f"benchmarks.{family}").workloads():
                ratio = workload.ratio()
                table.add_row(
                    f"{family}: {workload.name}",
                    workload.peer_name,
                    f"{ratio:.3g}",
                    f"<= {workload.goal:g}",
                    "reached" if ratio <= workload.goal else "MISSED",
                )
                console.print(f"{family}: {workload.name}: {ratio:.3g}", style="dim")
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
