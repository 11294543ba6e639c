"""The thirteen published collections by name: sizes, licences, files, and where they come from.

Nothing is read or downloaded here. Addresses, sizes and checksums of files are those that
ir_datasets 0.6 declares (its sizes of MIRACL's topics and qrels are of other files: here stand
those of the files with its checksums). Of LIMIT the revision is pinned, and the checksums are those
that an audit of LIMIT+ recorded for it. Counts are the study's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MSMARCO_HOME = "https://msmarco.z22.web.core.windows.net/msmarcoranking"
_BEIR_HOME = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
_HUB = "https://huggingface.co/datasets"
LIMIT_REVISION = "215834026c13176e520b3bc9d0a055099537ef99"


@dataclass(frozen=True)
class File:
    """A file to download.

    Attributes:
        path: where it stands, relative to the folder of downloads (`fetching.data_home`).
        urls: where it is to be had, the first that answers.
        bytes: its size.
        md5, sha256: its checksum, one of the two.
        instead: paths whose presence makes it unnecessary, all of them: what is made of it.
        headers: what its host wants to be told.
        exact: whether `bytes` is its very size and not about that.
    """

    path: str
    urls: tuple[str, ...]
    bytes: int
    md5: str = ""
    sha256: str = ""
    instead: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    exact: bool = True


@dataclass(frozen=True)
class Entry:
    """A published collection.

    Attributes:
        name: its name in the study.
        source: `ir_datasets`, or `beir` for LIMIT.
        identifier: its id in ir_datasets; empty for LIMIT.
        corpus: the name of its documents; collections of one corpus share it.
        documents, queries, judgements: how many, as published; of the queries the judged ones.
        language: ISO 639-1 code.
        licence: SPDX identifier or a short phrase.
        files: what is downloaded, in the order of use.
        description: one sentence for a person.
        citation: where it was published.
    """

    name: str
    source: str
    identifier: str
    corpus: str
    documents: int
    queries: int
    judgements: int
    language: str
    licence: str
    files: tuple[File, ...]
    description: str
    citation: str

    @property
    def download_bytes(self) -> int:
        """The size of all its files, those that it shares with other collections included."""
        return sum(file.bytes for file in self.files)


def _msmarco(*instead: str) -> File:
    """The one archive of all passages and of the small dev set."""
    return File(
        "msmarco-passage/collectionandqueries.tar.gz",
        (f"{_MSMARCO_HOME}/collectionandqueries.tar.gz",),
        1_057_717_952,
        md5="31644046b18952c1386cd4564ba2ae69",
        instead=tuple(f"msmarco-passage/{path}" for path in ("collection.tsv", *instead)),
        headers=(("X-Ms-Version", "2019-12-12"),),
    )


def _trec_dl_qrels(year: int, size: int, md5: str) -> File:
    return File(
        f"msmarco-passage/trec-dl-{year}/qrels",
        (
            f"https://trec.nist.gov/data/deep/{year}qrels-pass.txt",
            f"https://mirror.ir-datasets.com/{md5}",
        ),
        size,
        md5=md5,
    )


_MSMARCO_LICENCE = "non-commercial research (MS MARCO terms)"


def _beir(name: str, identifier: str, size: int, md5: str, **about: Any) -> Entry:
    made = ("docs.pklz4/bin.pos", "queries.json", "test.qrels")
    file = File(
        f"beir/{name}/source.zip",
        (f"{_BEIR_HOME}/{name}.zip",),
        size,
        md5=md5,
        instead=tuple(f"beir/{name}/{path}" for path in made),
    )
    return Entry(
        name=name,
        source="ir_datasets",
        identifier=identifier,
        corpus=name,
        language="en",
        files=(file,),
        **about,
    )


def _miracl(
    code: str, language: str, parts: tuple[tuple[int, str], ...], topics: tuple[int, str],
    qrels: tuple[int, str], **counts: int,
) -> Entry:  # fmt: skip
    corpus = f"{_HUB}/miracl/miracl-corpus/resolve/main/miracl-corpus-v1.0-{code}"
    judged = f"{_HUB}/macavaney/miracl-noauth/resolve/main/miracl-v1.0-{code}"
    home = f"miracl/v1.0/{code}"
    return Entry(
        name=f"miracl-{code}",
        source="ir_datasets",
        identifier=f"miracl/{code}/dev",
        corpus=f"miracl-{code}",
        language=code,
        licence="Apache-2.0",
        files=(
            *(
                File(
                    f"{home}/docs/docs-{n}.jsonl.gz",
                    (f"{corpus}/docs-{n}.jsonl.gz",),
                    size,
                    md5=md5,
                )
                for n, (size, md5) in enumerate(parts)
            ),
            File(
                f"{home}/dev/topics.tsv",
                (f"{judged}/topics/topics.miracl-v1.0-{code}-dev.tsv",),
                topics[0],
                md5=topics[1],
            ),
            File(
                f"{home}/dev/qrels.tsv",
                (f"{judged}/qrels/qrels.miracl-v1.0-{code}-dev.tsv",),
                qrels[0],
                md5=qrels[1],
            ),
        ),
        description=f"passages of the {language} Wikipedia; questions of its native speakers",
        citation="Zhang et al., 2023, MIRACL, TACL 11",
        **counts,
    )


def _limit_file(name: str, size: int, sha256: str) -> File:
    return File(
        f"limit/{name}",
        (f"{_HUB}/orionweller/LIMIT/resolve/{LIMIT_REVISION}/{name}",),
        size,
        sha256=sha256,
        exact=False,
    )


_ENTRIES = (
    Entry(
        name="msmarco-dev",
        source="ir_datasets",
        identifier="msmarco-passage/dev/small",
        corpus="msmarco",
        documents=8_841_823,
        queries=6_980,
        judgements=7_437,
        language="en",
        licence=_MSMARCO_LICENCE,
        files=(_msmarco("dev/small/queries.tsv", "dev/small/qrels"),),
        description="web passages; questions put to a search engine, the small dev set",
        citation="Bajaj et al., 2016, MS MARCO, arXiv:1611.09268",
    ),
    Entry(
        name="trec-dl-2019",
        source="ir_datasets",
        identifier="msmarco-passage/trec-dl-2019/judged",
        corpus="msmarco",
        documents=8_841_823,
        queries=43,
        judgements=9_260,
        language="en",
        licence=_MSMARCO_LICENCE,
        files=(
            _msmarco(),
            File(
                "downloads/eda71eccbe4d251af83150abe065368c",
                (f"{_MSMARCO_HOME}/msmarco-test2019-queries.tsv.gz",),
                4_276,
                md5="eda71eccbe4d251af83150abe065368c",
                instead=("msmarco-passage/trec-dl-2019/queries.tsv",),
            ),
            _trec_dl_qrels(2019, 187_092, "2f4be390198da108f6845c822e5ada14"),
        ),
        description="the passages of MS MARCO; the 43 judged queries of TREC Deep Learning 2019",
        citation="Craswell et al., 2020, TREC 2019 Deep Learning, arXiv:2003.07820",
    ),
    Entry(
        name="trec-dl-2020",
        source="ir_datasets",
        identifier="msmarco-passage/trec-dl-2020/judged",
        corpus="msmarco",
        documents=8_841_823,
        queries=54,
        judgements=11_386,
        language="en",
        licence=_MSMARCO_LICENCE,
        files=(
            _msmarco(),
            File(
                "msmarco-passage/trec-dl-2020/queries.tsv.gz",
                (f"{_MSMARCO_HOME}/msmarco-test2020-queries.tsv.gz",),
                4_131,
                md5="00a406fb0d14ed3752d70d1e4eb98600",
            ),
            _trec_dl_qrels(2020, 218_617, "0355ccee7509ac0463e8278186cdd8d1"),
        ),
        description="the passages of MS MARCO; the 54 judged queries of TREC Deep Learning 2020",
        citation="Craswell et al., 2021, TREC 2020 Deep Learning, arXiv:2102.07662",
    ),
    _beir(
        "arguana",
        "beir/arguana",
        3_773_617,
        "8ad3e3c2a5867cdced806d6503f29b99",
        documents=8_674,
        queries=1_406,
        judgements=1_406,
        licence="CC-BY-4.0",
        description="arguments; relevant is the best counterargument, the query is a document too",
        citation="Wachsmuth et al., 2018, ACL",
    ),
    _beir(
        "nfcorpus",
        "beir/nfcorpus/test",
        2_448_432,
        "a89dba18a62ef92f7d323ec890a0d38d",
        documents=3_633,
        queries=323,
        judgements=12_334,
        licence="not stated",
        description="medical abstracts; titles of lay articles on nutrition",
        citation="Boteva et al., 2016, ECIR",
    ),
    _beir(
        "scifact",
        "beir/scifact/test",
        2_816_079,
        "5f7d1de60b170fc8027bb7898e2efca1",
        documents=5_183,
        queries=300,
        judgements=339,
        licence="CC-BY-NC-2.0",
        description="abstracts of papers; scientific claims",
        citation="Wadden et al., 2020, EMNLP",
    ),
    _beir(
        "fiqa",
        "beir/fiqa/test",
        17_948_027,
        "17918ed23cd04fb15047f73e6c3bd9d9",
        documents=57_638,
        queries=648,
        judgements=1_706,
        licence="not stated",
        description="answers and posts on finance; questions of users",
        citation="Maia et al., 2018, WWW Companion",
    ),
    _beir(
        "scidocs",
        "beir/scidocs",
        142_471_588,
        "38121350fc3a4d2f48850f6aff52e4a9",
        documents=25_657,
        queries=1_000,
        judgements=29_928,
        licence="GPL-3.0",
        description="abstracts of papers; titles of papers that cite them",
        citation="Cohan et al., 2020, ACL",
    ),
    _beir(
        "trec-covid",
        "beir/trec-covid",
        73_876_720,
        "ce62140cb23feb9becf6270d0d1fe6d1",
        documents=171_332,
        queries=50,
        judgements=66_336,
        licence="CORD-19 Dataset Licence",
        description="papers on coronaviruses; questions of experts, deeply judged",
        citation="Voorhees et al., 2021, SIGIR Forum 54",
    ),
    Entry(
        name="limit",
        source="beir",
        identifier="",
        corpus="limit",
        documents=50_000,
        queries=1_000,
        judgements=2_000,
        language="en",
        licence="CC-BY-4.0",
        files=(
            _limit_file(
                "corpus.jsonl",
                32_450_000,
                "10209a6916e029c199676caec3349cb925e2a74451161899c30c36e1b9032f82",
            ),
            _limit_file(
                "queries.jsonl",
                54_500,
                "1ead4c54487728173aa1433778a2ab0f4cf1cf8aeeedb886c05238b32d818594",
            ),
            _limit_file(
                "qrels.jsonl",
                140_000,
                "a4f9b25b694623c240c6499fb8d8a4896355db9c840f29bd14580d0d4100ea89",
            ),
        ),
        description="people and what they like; every pair of 46 of them answers one query",
        citation="Weller et al., 2025, LIMIT, arXiv:2508.21038",
    ),
    _miracl(
        "hi",
        "Hindi",
        (
            (95_650_487, "ffefe282e6be09f06a69d2945f402bda"),
            (1_161_610, "3fe3f9f265b2f52a25b4a49b80c82cf5"),
        ),
        (52_022, "69aafc100baf5617d7d7e63b47c4d86a"),
        (79_771, "0b97e26e09bdf24a21325b74016d3047"),
        documents=506_264,
        queries=350,
        judgements=3_494,
    ),
    _miracl(
        "bn",
        "Bengali",
        ((59_713_182, "1e30b159bc3634e068bcf8f1fbff68ef"),),
        (53_473, "17ff030d33d678547626c66fb9f52b4c"),
        (75_970, "42158a39e400a5a6ebef97b9e91e54b1"),
        documents=297_265,
        queries=411,
        judgements=4_206,
    ),
    _miracl(
        "te",
        "Telugu",
        (
            (68_858_140, "7b1067004a12a018eb4ca9e7e7655600"),
            (3_454_223, "703a0ac0d66c6fa6b684df9d7d6afd20"),
        ),
        (90_134, "6382282438291981c2b65ae3c8f3dd71"),
        (28_814, "2f7c45f44bc8842633a8eb14dbb99f19"),
        documents=518_079,
        queries=828,
        judgements=1_606,
    ),
)


@dataclass(frozen=True)
class BuiltIn:
    """A collection that needs no download, with its default options.

    Attributes:
        name: the source, `collections.registry` opens it.
        documents, queries, judgements: how many, with the packages that requirements.lock pins.
        licence: SPDX identifier or a short phrase.
        packages: the installed packages whose text it is.
        description: one sentence for a person.
    """

    name: str
    documents: int
    queries: int
    judgements: int
    licence: str
    packages: tuple[str, ...]
    description: str
    language: str = "en"


BUILT_IN = (
    BuiltIn(
        "wiki-sections",
        4_310,
        1_435,
        4_061,
        "CC-BY-SA-3.0",
        ("gensim",),
        "paragraphs of 106 Wikipedia articles; titles and section headings",
    ),
    BuiltIn(
        "api-docs",
        3_500,
        3_310,
        3_530,
        "BSD-3-Clause",
        ("numpy", "scipy", "pandas", "scikit-learn", "statsmodels"),
        "docstrings without their summary lines; the summary lines",
    ),
    BuiltIn(
        "limit",
        2_000,
        496,
        992,
        "Apache-2.0",
        (),
        "generated after LIMIT: every pair of 32 people answers one query",
    ),
)
PUBLISHED: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def entry_for(name: str, options: Mapping[str, Any]) -> Entry | None:
    """The published collection that an entry of the config describes, None where it is another.

    That is `source: published` (by `id`, else by `name`), a published name without a source
    (`limit` without one is generated), or `source: ir_datasets` with the id of one.
    """
    source = options.get("source")
    if source == "published":
        return PUBLISHED.get(str(options.get("id", name)))
    if source == "ir_datasets":
        identifier = options.get("id")
        return next((entry for entry in _ENTRIES if entry.identifier == identifier), None)
    return None if source is not None or name == "limit" else PUBLISHED.get(name)
