# What must hold before jobs are handed to other machines and other environments.

import os

from whencount import cluster, occupancy

# A run that was killed leaves Snakemake's lock; where nobody works here any more it goes.
if workflow.is_main_process:
    occupancy.tell(occupancy.begin(Path.cwd(), [RESULTS, REPORTS]))

# Where envs/link-package.sh finds this clone, also where Snakemake works in another folder.
os.environ.setdefault("WHENCOUNT_SOURCE", str(workflow.basedir))

# On a cluster starting a job costs more than a small score, so those of one collection go together,
# as many as `group-components: small_scores` of cluster/config.yaml says.
LARGEST_GROUPED = 4  # shards


def group_of_scores(collection):
    if SHARDS[CORPUS[collection]] > LARGEST_GROUPED:
        return None
    name = f"scores_{collection}"
    # Snakemake notes this itself where a group is text with wildcards, but not for a function.
    workflow.parent_groupids[name] = "small_scores"
    return name


onstart:
    if workflow.executor_plugin.name == "slurm":
        try:
            cluster.check()
        except InputError as error:
            raise WorkflowError(str(error)) from None
    occupancy.sweep_left()
