# What must hold before jobs are handed to other machines and other environments.

import os

from whencount import cluster

# Where envs/link-package.sh finds this clone, also where Snakemake works in another folder.
os.environ.setdefault("WHENCOUNT_SOURCE", str(workflow.basedir))


onstart:
    if workflow.executor_plugin.name == "slurm":
        try:
            cluster.check()
        except InputError as error:
            raise WorkflowError(str(error)) from None
