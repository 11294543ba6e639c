# whencount: when do IDF, saturation and length normalisation help, and can that be told without labels?
#
#   snakemake --cores 2 study        everything, ending with the report
#   snakemake --cores 2 report       the report from the tables that stand
#   snakemake --cores 2 transfer     predictors frozen in retrieval, put to the test on other settings
#   snakemake --cores 2 pages        the scorer chooses pages of a decoder's key-value cache
#   snakemake --cores 2 experts      the scorer chooses the experts of a mixture-of-experts model
#   snakemake --cores 2 fusion       a dense and a lexical ranking made one: when does which rule help
#   snakemake --cores 2 economics    what the index of each representation costs
#   snakemake --cores 2 latent_terms sparse codes of tokens as the terms of an index
#   snakemake --cores 2 learned_sparse  SPLADE models: what FLOPS in training does to an index
#   snakemake --cores 2 late_interaction  token vectors and MaxSim, exactly and through an index
#   snakemake --cores 2 reversal     BM25 against the inner product, on them and on SPLADE-like vectors
#   snakemake --cores 2 site         the page that links every report, with an explorer of rows
#   snakemake --cores 2 rows         results/rows.parquet
#   snakemake --cores 2 results/rows/sae_token.limit.seed0.parquet       one representation x collection
#   snakemake study --configfile configs/full.yaml --profile cluster     the published grid on Slurm

from snakemake.utils import min_version

min_version("9.0")

if not workflow.configfiles:

    configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/execution.smk"
include: "workflow/rules/collections.smk"
include: "workflow/rules/bases.smk"
include: "workflow/rules/vectors.smk"
include: "workflow/rules/references.smk"
include: "workflow/rules/rows.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/settings.smk"
include: "workflow/rules/expert_jobs.smk"
include: "workflow/rules/pages.smk"
include: "workflow/rules/experts.smk"
include: "workflow/rules/setting_reports.smk"
include: "workflow/rules/transfer.smk"
include: "workflow/rules/learned_jobs.smk"
include: "workflow/rules/learned_sparse.smk"
include: "workflow/rules/late_jobs.smk"
include: "workflow/rules/late_interaction.smk"
include: "workflow/rules/latent_jobs.smk"
include: "workflow/rules/latent_terms.smk"
include: "workflow/rules/latent_vectors.smk"
include: "workflow/rules/latent_reports.smk"
include: "workflow/rules/economics_jobs.smk"
include: "workflow/rules/economics.smk"
include: "workflow/rules/fusion_jobs.smk"
include: "workflow/rules/fusion.smk"
include: "workflow/rules/site_jobs.smk"
include: "workflow/rules/site.smk"


localrules:
    study,
    report,
    rows,
    pages,
    experts,
    transfer,
    economics,
    fusion,
    latent_terms,
    reversal,
    learned_sparse,
    late_interaction,


# Every table stands here by name, so that a lost one is made again although the page is there.
rule study:
    default_target: True
    input:
        TABLES,
        PAGES,
        SITE if JOBS else [],
        alone,
    message:
        "the study is done: open {FIRST_PAGE}"


rule report:
    input:
        TABLES,
        PAGES,
        SITE if JOBS else [],
        alone,
    message:
        "the report is there: open {FIRST_PAGE}"


rule rows:
    input:
        f"{RESULTS}/rows.parquet",
    message:
        "the rows are in {RESULTS}/rows.parquet"


rule transfer:
    input:
        transfer_targets,
    message:
        "the transfer test is done: open {REPORTS}/transfer.html"


rule pages:
    input:
        pages_targets,
    message:
        "the study of pages is done: open {REPORTS}/pages.html"


rule experts:
    input:
        experts_targets,
    message:
        "the study of experts is done: open {REPORTS}/experts.html"


rule fusion:
    input:
        fusion_targets,
    message:
        "the study of two arms is done: open {REPORTS}/fusion.html"


rule economics:
    input:
        economics_targets,
    message:
        "the study of costs is done: open {REPORTS}/economics.html"


rule latent_terms:
    input:
        latent_targets,
    message:
        "the study of latent terms is done: open {REPORTS}/latent_terms.html"


rule reversal:
    input:
        reversal_targets,
    message:
        "the comparison is done: open {REPORTS}/reversal.html"


rule learned_sparse:
    input:
        learned_targets,
    message:
        "the study of learned sparse vectors is done: open {REPORTS}/learned_sparse.html"


rule late_interaction:
    input:
        late_targets,
    message:
        "the study of late interaction is done: open {REPORTS}/late_interaction.html"
