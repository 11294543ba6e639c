"""docs/performance.md out of the measured rows: tables, targets, and where one is missed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.measure import table

HEAD = """# How fast the engine is, and what it takes

Written by `make bench`; every number below is measured, on the machine named here, never copied.
Jobs of a table run by turns in one process. Times are CPU time (the wall clock also counts what
other programs did), medians over the rounds with the lowest and highest; ratios are of medians.
"""

DATA = """\
Data: 20,000 features, 128 non-zeros per document and 32 per query, log-normal values with a
coefficient of variation of 1.39. In shape z features follow rank^-0.78 and a query shares 3.4
features with a document; in shape f they follow rank^-0.454 and it shares 0.41. Top 100.
"""

PEER_NOTE = """\
The peers rank by one configuration (000); ours gives all eight, rescored in float64, with exact
ties. Ratios are to the faster of splade-index and bm25s. bm25s cannot weight query terms. Bytes
are those of the index per non-zero: ours serves all configurations and parameters, a peer's one.
Selection and, for ours, rescoring are included; building is not. PISA, which prunes, has a table
of its own.
"""

FLOOR_NOTE = """\
`collect` is the float32 pass: transforms once per block and batch (about 1 ns per posting of the
block), one 32-byte load, multiply-add and store into eight lanes per posting of the query (1.0 to
1.2 ns measured here where the accumulators lie in the second-level cache; 0.7 ns where everything
lies in the first), and one look at every document's eight lanes (0.5 ns). `rescore` finds each
candidate's postings again and adds them up in float64; `merge` and `sort_heaps` select.

The floor of this design is the 32-byte read-modify-write per posting. Peers keep one float32 per
document: at 100,000 documents those 400 KB fit the second-level cache of this processor (2 MB per
core), so their scattered additions seldom miss. There the targets are missed, and the parts above
say why: of shape f the additions into lanes are about a fifth of the time; the look at all lanes,
and finding 200 (z: 300) candidates among 32 lists each for eight rankings, are most of the rest,
and do not shrink with the postings. At 1,000,000 documents the peers' 4 MB no longer fit, and all
eight rankings take less than one of theirs.

Tried, measured, kept: thresholds seeded from stripes of the first block, lists of candidates of
about nine depths, transforms in huge pages, 64 ids compared at once around a guessed place.
Tried, measured, left out: sixteen-bit lanes (0.83 to 0.95 of the time of that one step, weaker
bounds), asking for postings of candidates ahead of their turn, blocks of 1,024 to 8,192 documents,
offsets stored in place of ids (each within 5 %).

"""

MEMORY = """## Memory

An index takes `6 n + 12 N + 4 B (V + 1) + 8 (B + V + 1)` bytes for n non-zeros, N documents, V
features and B blocks; blocks have 256 to 16,384 documents, so that this stays below 8.2 n for rows
of 8 non-zeros or more. Offsets are 64-bit. It is written in one pass over vector shards, holding
one block and the shards at hand, and opened memory-mapped.

A search takes, beyond the index (`whencount.engine.cpu.working_bytes`), with G groups of four
transforms (1 for one cell of (k1, b), 3 for three by three), L = 8 G lanes, D documents and P
postings in the largest block, Q queries, depth k, T threads and R rankings per query, at most

    2 * 128 MiB + T G (208 D + 16 P) + Q k (24 L + 12 R) + 24 MiB

and 4 * 12 N bytes while collection statistics are computed. `tests/test_engine_memory.py` holds
both at 30,000 documents, and at 1,000,000 documents of 128 non-zeros under `make test-slow`.
Vectors that are not indexed yet are indexed and searched in pieces of 2^26 pairs (420 MB).
On a torch device: `64 n + 24 d B` bytes for a chunk of d documents with n postings and a batch of
B <= 256 queries, and `8 V B`, within 6 GiB (`whencount.engine.torch_kernel.MEMORY_BYTES`).
"""

PAGES_NOTE = """\
One layer, one row, one thread, random keys: 32 query heads on 8 key-value heads of size 64, pages
of 16 tokens (Llama-3.2-1B). float32 on a CPU and CPU time; float16 on a GPU and the wall clock.
Jobs run by turns through as many layers as 600 MB of keys and values make. A selected step is what
a decode step does: bounds of all pages, the choice, attention over the chosen ones. "Times faster"
is against full attention in its faster form, in which the query heads of a group meet their keys in
one product; transformers' own call, which one decoded row makes, is slower. The floor is the bytes
that must be read, page summaries and each selected page once for all heads that share it, at the
rate at which the first job reads the context; the gap is time over floor.

What lies between: by query head, the heads of a group choose different pages, so a page that one
head has read is seldom of use to the next, and where random pages of 4 KB begin, memory is waited
for. The bounds are within 1.5 of their floor. The corrections work in float64 (so that the
identities of the study hold exactly), which costs about as much again as Quest's own selection.
Tried, left out: gathering pages first, then attention (twice the time on a CPU; what a GPU does),
asking for the next page ahead of its turn (a tenth), pages in huge pages of memory (nothing).
"""


PRUNING_COLUMNS = {
    "shape": "shape",
    "nonzeros": "non-zeros per document",
    "query": "per query",
    "depth": "top",
    "job": "job",
    "cpu_ms": "CPU ms/query",
    "lowest": "lowest",
    "highest": "highest",
    "ratio": "ratio",
    "bytes_per_nonzero": "bytes per non-zero",
}

PRUNING_NOTE = """\
100,000 documents, 100 queries, one thread. PISA (the compiled module of pyterrier-pisa) searches
full BM25 folded into whole numbers of 8 bits (`whencount.exporting`) with query weights of 5 bits:
a term is given to it as often as it weighs, since this module takes no weights, and reading that is
part of its time. `ranked_or` does not prune. The tests hold that all of them return our ranking of
the same whole numbers. Ratios are to the fastest of PISA. Ours ranks by float weights, exactly,
with ties; its index serves every configuration and (k1, b), PISA's the one folded in. Ours takes
the queries as one batch, which shares the transforms of postings, where it does not say otherwise;
PISA takes them one by one. Where queries have many features, none of them rare, there is little to
skip, which has been found of learned weights too (Mackenzie et al., 2021, arXiv:2110.11540).
A query asked alone pays in full for what a batch shares, which for a short one is most of its
time: there PISA is faster by far.
"""


def page(kept: Mapping[str, Any]) -> str:
    """The whole page, from the JSON that `benchmarks.run_all` keeps."""
    parts = [HEAD]
    if "facts" in kept:
        names = ", ".join(f"{name} {found}" for name, found in kept["facts"]["versions"].items())
        parts.append(f"Machine: {kept['facts']['machine']}. Versions: {names}.\n")
    if "search" in kept:
        parts += _search(kept["search"])
    parts.append(MEMORY)
    parts += _others(kept)
    return "\n".join(parts)


def _search(tables: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    times = {"cpu_ms": "CPU ms/query", "lowest": "lowest", "highest": "highest", "wall_ms": "wall"}
    peers = {"shape": "shape", "documents": "documents", "job": "job", **times}
    peers |= {"ratio": "ratio", "target": "target", "bytes_per_nonzero": "bytes per non-zero"}
    sweep = {"shape": "shape", "job": "job", **times, "ratio": "times one cell"}
    growth = {"job": "what changes", "documents": "documents", "nonzeros": "non-zeros"}
    growth |= {"queries": "queries", **times, "ns_per_posting": "ns per shared feature"}
    growth |= {"build_ns_per_nonzero": "building, ns per non-zero"}
    parts = [
        "## All eight configurations against one pass of a peer\n",
        DATA,
        table(tables["peers"], peers) + "\n",
        PEER_NOTE,
        "### Where a search spends its time\n",
        table(
            tables["passes"],
            {"shape": "shape", "part": "part", "cpu_ms": "CPU ms/query", "share": "share"},
        )
        + "\n",
        FLOOR_NOTE,
        "## Several cells of (k1, b) in one pass\n",
        table(tables["sweep"], sweep) + "\n",
        "Nine cells have 24 distinct rankings among their 72. Target: at most 3 times one cell.\n",
        "## Values of 8 bits\n",
        table(
            tables["eight_bits"],
            {
                "configuration": "configuration",
                "top10": "share of the top 10 kept",
                "top100": "of the top 100",
                "bytes_per_nonzero": "bytes per non-zero",
                "usual_bytes": "at 32 bits",
            },
        )
        + "\n",
        "256 levels of equal ratio between the least and the largest value, shape z, 100,000"
        " documents. The study uses 32 bits.\n",
        "## Threads\n",
        table(tables["threads"], {"job": "job", **times, "speed": "speed-up by the wall"}) + "\n",
        "Target: at least 1.8 on an idle machine. What the wall clock shows beyond half of the CPU"
        " time of two threads is work on one thread (query terms, plans, the order of the results)"
        " or another program's: by CPU time alone two idle processors could give"
        f" {_bound(tables['threads']):.2f}.\n",
        "## How the cost grows\n",
        table(tables["growth"], growth) + "\n",
        "All eight configurations, shape z, one thread. A query alone pays for the transforms of"
        " its postings; a batch shares them.\n",
        "## Targets\n",
        table(_verdicts(tables), {"what": "what", "target": "target", "found": "found", "met": ""})
        + "\n",
    ]
    return parts


def _bound(threads: list[dict[str, Any]]) -> float:
    """The speed-up of two threads if each had a processor of its own."""
    return float(2 * threads[0]["cpu_ms"] / threads[-1]["cpu_ms"])


def _verdicts(tables: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = []
    for row in tables["peers"]:
        if row.get("target") is not None:
            what = f"all eight against one pass, {row['shape']}, {row['documents']:,} documents"
            rows.append((what, row["target"], row["ratio"], row["ratio"] <= row["target"]))
    for row in tables["sweep"]:
        if row["job"] == "9 cells":
            what = f"nine cells against one, {row['shape']}"
            rows.append((what, 3.0, row["ratio"], row["ratio"] <= 3.0))
    size = max(row.get("bytes_per_nonzero") or 0.0 for row in tables["peers"] if "target" in row)
    rows.append(("index, bytes per non-zero", 8.2, size, size <= 8.2))
    speed = tables["threads"][-1]["speed"]
    rows.append(("two threads against one", 1.8, speed, speed >= 1.8))
    return [
        {"what": what, "target": target, "found": found, "met": "met" if met else "missed"}
        for what, target, found, met in rows
    ]


TRAINER_COLUMNS = {
    "trainer": "trainer",
    "features": "features",
    "rate": "best rate",
    "states_per_second": "states/s",
    "cpu_us_per_state": "CPU us per state",
    "seconds": "s",
    "held_back_error": "error held back",
    "our_seconds_to_its_error": "our s to its error",
    "its_seconds_to_our_error": "its s to our error",
}
TRAINERS_NOTE = """Token states of MiniLM on documentation of installed packages (384
dimensions), 16 active, batches of 1,024, two passes, two threads; dictionary_learning 0.1.0 and
eai-sparsify 1.3.3 in an environment of their own. Every trainer ran at the rates .001, .003 and
.01, the peers at their own choice too, and stands at the rate of its least error: the share of the
variance of states held back that its reconstruction leaves. The published recipe's peak of .001 is
for runs of very many steps; a short one wants .003 to .01.
"""


ADVISE_COLUMNS = {
    "format": "format",
    "documents": "documents",
    "nonzeros": "weights",
    "file_gigabytes": "file, GB",
    "seconds": "wall s",
    "private_gigabytes": "private, GB",
    "resident_gigabytes": "resident, GB",
}
ADVISE_NOTE = """Shape z, 64 weights per document, 1,000 queries of 16 features, one reference,
nine cells of k1 and b, two threads; vectors are read into a temporary folder, put in order, indexed
on disk and searched from there. Private is memory that is not a file; resident counts pages of
memory-mapped files too, which the system takes back where it needs them. The limit is 4 GB,
resident. Progress with a rate is printed every fifteen seconds, or the benchmark fails.
`python -m benchmarks.advise_million`.
"""


def _advise(rows: list[dict[str, Any]]) -> list[str]:
    units = ("file", "private", "resident")
    told = [
        row | {f"{unit}_gigabytes": row[f"{unit}_bytes"] / 1e9 for unit in units} for row in rows
    ]
    return [
        "## Advising on a million documents\n",
        table(told, ADVISE_COLUMNS) + "\n",
        ADVISE_NOTE,
    ]


def _others(kept: Mapping[str, Any]) -> list[str]:
    parts = []
    if "analysis" in kept:
        columns = {"what": "what", "ours": "ours", "ours_seconds": "CPU s", "peer": "against"}
        columns |= {"peer_seconds": "CPU s", "ratio": "times faster", "target": "target"}
        parts += ["## Measures and bootstrap\n", table(kept["analysis"], columns) + "\n"]
    if "sae" in kept:
        columns = {"job": "job", "microseconds_per_state": "CPU us per state"}
        columns |= {"lowest": "lowest", "highest": "highest"}
        columns |= {"ratio_to_encoder_product": "times the encoder product"}
        parts += [
            "## Training a Top-K SAE\n",
            table(kept["sae"], columns) + "\n",
            "768 dimensions, 8,192 features, 32 active, one thread. Target: 1.4 times the encoder's"
            " product alone. What comes on top of the product, in us per state, as profiled before"
            " the gradient and AdamW were fused: the top k 5 to 7, the decoder 7 to 10, the sparse"
            " gradients 10, AdamW 9 to 10. All of it reads or writes dictionary and moments, "
            "which no cache holds, so it is bound by memory and not by arithmetic.\n",
        ]
    if "sae_trainers" in kept:
        parts += [
            "## Training a Top-K SAE beside public trainers\n",
            table(kept["sae_trainers"], TRAINER_COLUMNS) + "\n",
            TRAINERS_NOTE,
        ]
    if "pruning" in kept:
        parts += [
            "## Exact search of eight beside pruned search of one\n",
            table(kept["pruning"], PRUNING_COLUMNS) + "\n",
            PRUNING_NOTE,
        ]
    if "advise_million" in kept:
        parts += _advise(kept["advise_million"])
    if "pages" in kept:
        columns = {"device": "device", "context": "context", "job": "job"}
        columns |= {"milliseconds": "ms per layer", "lowest": "lowest", "highest": "highest"}
        columns |= {"times_faster": "times faster", "megabytes": "MB read"}
        columns |= {"floor_milliseconds": "floor, ms", "gap": "gap"}
        parts += [
            "## A decode step over chosen pages\n",
            table(kept["pages"], columns) + "\n",
            PAGES_NOTE,
        ]
    return parts
