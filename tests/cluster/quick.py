"""Snakemake as it is, but for the pause between two looks at the jobs: a second and a half.

The Slurm plugin lets ten more seconds pass after each look that found nothing finished, which is
right for jobs of hours and would triple the time of a test.
"""

from __future__ import annotations

import asyncio

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(executor: RemoteExecutor) -> None:
    await asyncio.sleep(1.5)


if __name__ == "__main__":
    RemoteExecutor.sleep = sleep
    main()
