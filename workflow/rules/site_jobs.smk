# What the site is made of: the jobs whose documents are ranked again, the pages that are linked.

import hashlib
import shlex

MOVED = [f"{RESULTS}/moved/{name}.parquet" for name in COLLECTIONS] if JOBS else []
SITE = [f"{REPORTS}/index.html", f"{REPORTS}/index.texts.js"]
TABLES = [*TABLES, *MOVED]


def jobs_on(collection):
    """The jobs whose queries are ranked again: none of a corpus of many shards, for a page."""
    if SHARDS[CORPUS[collection]] > LARGEST_GROUPED:
        return []
    return [job for job in sorted(JOBS) if job.collection == collection]


def moved_sources(collection):
    """The vectors of a collection with the jobs that read them; external encoders apart."""
    sources = {}
    for job in jobs_on(collection):
        external = external_of(job.representation)
        representation = job.representation if external else None
        source = sources.setdefault(
            external or "",
            {
                "documents": document_vectors(CORPUS[collection], representation),
                "queries": query_vectors(collection, representation),
                "jobs": [],
            },
        )
        source["jobs"].append(
            [job.representation, job.seed, f"{RESULTS}/per_query/{job.name}.parquet"]
        )
    return [sources[name] for name in sorted(sources)]


def moved_vectors(wildcards):
    return [
        path
        for source in moved_sources(wildcards.collection)
        for path in [*source["documents"], source["queries"]]
    ]


def moved_per_query(wildcards):
    return [
        f"{RESULTS}/per_query/{job.name}.parquet"
        for job in jobs_on(wildcards.collection)
    ]


def site_tables():
    """The tables of retrieval that the explorer reads; none where the study has no such rows."""
    if not JOBS:
        return {}
    return {
        "rows": f"{RESULTS}/rows.parquet",
        "per_query": [f"{RESULTS}/per_query/{job.name}.parquet" for job in JOBS],
        "moved": MOVED,
        "collections": [f"{RESULTS}/collections/{name}" for name in COLLECTIONS],
        "pages": PAGES,
    }


def site_options(wildcards, input):
    """The options that name them, one line."""
    options = [("--rows", [input.rows])] if JOBS else []
    for name, option in (
        ("per_query", "--per-query"),
        ("moved", "--moved"),
        ("collections", "--collection"),
        ("pages", "--page"),
    ):
        options.append((option, input[name] if JOBS else []))
    return " ".join(
        f"{option} {shlex.quote(str(path))}"
        for option, paths in options
        for path in paths
    )


def pages_beside(wildcards):
    """The pages of other targets that stand, and what is in them: a new one is a new link."""
    own = {Path(page).name for page in [*PAGES, *SITE]}
    return as_json(
        {
            page.name: hashlib.sha256(page.read_bytes()).hexdigest()[:16]
            for page in sorted(Path(REPORTS).glob("*.html"))
            if page.name not in own
        }
    )
