"""The tasks of RULER as its paper has them (arXiv:2404.06654): parameters, lengths, scores."""

from __future__ import annotations

import ast
import re
from collections import Counter
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruler_texts import PROSE, encode, texts

from whencount import ruler
from whencount.errors import InputError
from whencount.ruler.lengths import largest_fitting
from whencount.ruler.needles import NOISE

GENERATED = {
    **{name: 128 for name in ruler.TASKS if name.startswith("niah")},
    "vt": 30,
    "cwe": 120,
    "fwe": 50,
    "qa_1": 32,
    "qa_2": 32,
}
NUMBER, UUID = r"\d{7}", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
WORD = r"[A-Za-z]+-[A-Za-z]+"
# haystack, key, value, needles said of asked and unasked keys, references
NEEDLES = {
    "niah_single_1": ("noise", WORD, NUMBER, 1, 1),
    "niah_single_2": ("prose", WORD, NUMBER, 1, 1),
    "niah_single_3": ("prose", WORD, UUID, 1, 1),
    "niah_multikey_1": ("prose", WORD, NUMBER, 4, 1),
    "niah_multikey_2": ("needles", WORD, NUMBER, None, 1),
    "niah_multikey_3": ("needles", UUID, UUID, None, 1),
    "niah_multivalue": ("prose", WORD, NUMBER, 4, 4),
    "niah_multiquery": ("prose", WORD, NUMBER, 4, 4),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> ruler.Texts:
    return texts(tmp_path_factory.mktemp("ruler"))


def examples(
    task: str, given: ruler.Texts, context: int = 2048, number: int = 3, **further: Any
) -> ruler.Examples:
    return ruler.open_examples(
        task, context=context, number=number, encode=encode, texts=given, **further
    )


def test_there_are_thirteen_tasks_with_their_limits_of_generation(given: ruler.Texts) -> None:
    assert GENERATED.keys() == ruler.TASKS.keys()
    assert len(ruler.TASKS) == 13
    for task, generated in GENERATED.items():
        assert examples(task, given)[0].maximum_generated == generated


@pytest.mark.parametrize("task", NEEDLES)
def test_needles_are_hidden_as_the_paper_says(task: str, given: ruler.Texts) -> None:
    haystack, key, value, said, asked = NEEDLES[task]
    for example in examples(task, given):
        kind = "uuids" if value == UUID else "numbers"
        found = re.findall(
            rf"One of the special magic {kind} for ({key}) is: ({value})\.", example.context
        )
        assert len(found) == example.context.count("One of the special magic")
        if said is None:
            assert len(found) > 20
        else:
            assert len(found) == said
        assert len({pair[1] for pair in found}) == len(found)
        assert len(example.references) == asked
        told = {pair[1]: pair[0] for pair in found}
        assert all(told[reference] in example.question for reference in example.references)
        assert len(set(told.values())) == (1 if task == "niah_multivalue" else len(found))
        assert (NOISE in example.context) == (haystack == "noise")
        assert ("keeper of the lighthouse" in example.context) == (haystack == "prose")


def test_a_chain_of_four_hops_follows_a_worked_example(given: ruler.Texts) -> None:
    for example in examples("vt", given):
        worked, part = example.context.split("\n\nMemorize")
        chain = re.findall(r"VAR ([A-Z]{5}) = (?:VAR )?(\w+)", part)
        value = re.search(r"assigned the value (\d{5}) in", example.question)
        assert value is not None
        names = [name for name, _ in chain]
        assert tuple(names) == example.references
        assert len(names) == 5
        assert [source for _, source in chain] == [value[1], *names[:-1]]
        shown = re.findall(r"VAR ([A-Z]{3}) = ", worked)
        assert worked.endswith(" ".join(shown))
        assert len(shown) == 5


@pytest.mark.parametrize(
    ("context", "often", "seldom", "shown"), [(4096, 30, 3, 10 * 10 + 30 * 3), (2048, 6, 1, 40)]
)
def test_ten_words_are_more_common_than_all_others(
    context: int, often: int, seldom: int, shown: int, given: ruler.Texts
) -> None:
    example = examples("cwe", given, context)[0]
    worked, part = example.context.split("\nBelow is a numbered list")
    counts = Counter(re.findall(r"\d+\. (\w+)", part))
    assert {word for word, count in counts.items() if count == often} == set(example.references)
    assert set(counts.values()) == {often, seldom}
    assert len(example.references) == 10
    assert len(re.findall(r"\d+\. \w+", worked)) == shown + 10


def test_coded_words_follow_a_zeta_distribution_of_exponent_two(given: ruler.Texts) -> None:
    example = examples("fwe", given, 4096)[0]
    text = example.context.split("coded words. ")[1].split()
    ranked = Counter(text).most_common()
    assert ranked[0][0] == "..."
    assert tuple(word for word, _ in ranked[1:4]) == example.references
    assert all(re.fullmatch("[a-z]{6}", word) for word, _ in ranked[1:])
    assert len(ranked) <= 4096 // 50
    # Counts are shares of zeta(2) = 1.6449, rounded down: 1 / (1.6449 r^2).
    words = ranked[0][1] * 1.6449
    for rank, (_, count) in enumerate(ranked[:8], 1):
        assert count == pytest.approx(words / 1.6449 / rank**2, abs=1.1)


@pytest.mark.parametrize("task", ["qa_1", "qa_2"])
def test_a_question_has_its_paragraphs_among_distractors(task: str, given: ruler.Texts) -> None:
    for example in examples(task, given, 512, number=5):
        documents = re.split(r"Document \d+:\n", example.context)[1:]
        assert len(documents) > 5
        assert len(set(documents)) == len(documents)
        assert "Who built it?" not in example.question
        assert any(example.references[0] in document for document in documents)
        assert len(example.references) == 1
        if task == "qa_2":
            number = re.search(r"company (\d+) born", example.question)
            assert number is not None
            assert f"Company {number[1]}\nCompany" in example.context
            assert f"Founder {number[1]}\nA sailor. Founder" in example.context


@pytest.mark.parametrize("task", ruler.TASKS)
@pytest.mark.parametrize("context", [1024, 4096])
def test_an_example_fills_its_context_and_holds_its_references(
    task: str, context: int, given: ruler.Texts
) -> None:
    if task.startswith("qa"):
        context //= 2  # the made files of questions hold no more
    if task == "qa_1":
        context = 512
    # The largest step: a line of needles with two uuids, or a word thrice in a list.
    step = max(len(encode(line)) for line in (NOISE, *PROSE)) + 60
    for example in examples(task, given, context):
        counted = len(encode(example.context)) + len(encode(example.question))
        assert example.tokens == counted + example.maximum_generated
        assert context - step < example.tokens <= context
        references = [r for r in example.references if r in example.context]
        assert len(references) == len(example.references)
        assert not any(reference in example.question for reference in example.references)


@pytest.mark.parametrize("task", ruler.TASKS)
def test_an_example_depends_on_the_seed_and_its_number_alone(task: str, given: ruler.Texts) -> None:
    first = examples(task, given, 1024, number=4)
    again = examples(task, given, 1024, number=9)
    assert first[2] == again[2]
    assert [one.id for one in first] == [f"{task}-1024-{n:04d}" for n in range(4)]
    assert len({one.context for one in first}) == 4
    other = examples(task, given, 1024, number=4, seed=1)
    assert all(a.context != b.context for a, b in zip(first, other, strict=True))


def test_needles_stand_at_every_depth_of_noise(given: ruler.Texts) -> None:
    depths = []
    for example in examples("niah_single_1", given, 1024, number=200):
        lines = example.context.splitlines()[1:]
        place = next(n for n, line in enumerate(lines) if line != NOISE)
        depths.append(place / (len(lines) - 1))
    counts = np.histogram(depths, bins=4, range=(0, 1))[0]
    # 50 expected in each quarter, standard deviation 6.1.
    assert counts.min() > 50 - 3 * 6.1
    assert counts.max() < 50 + 3 * 6.1


def test_needles_stand_in_prose_at_forty_depths(given: ruler.Texts) -> None:
    # Depths are the whole percents nearest to 40 even steps, and cut a haystack of n sentences.
    allowed = {round(100 * step / 39) for step in range(40)}
    seen = set()
    for example in examples("niah_single_2", given, 4096, number=100):
        text = example.context.split("afterwards.\n")[1]
        before, after = re.split(r"One of the special magic numbers for \S+ is: \d+\.", text)
        count, rest = before.count("wind came"), after.count("wind came")
        fitting = {depth for depth in allowed if (count + rest) * depth // 100 == count}
        assert fitting
        seen |= fitting
    assert len(seen) > 30


def test_all_matches_are_shares_of_references_found_whatever_the_case() -> None:
    assert ruler.score("niah_multikey_1", "It is 1234567.", ["1234567"]) == 1.0
    assert ruler.score("niah_multivalue", "1, 2 and\n3", ["1", "2", "3", "44"]) == 0.75
    assert ruler.score("vt", "abcde fghij", ["ABCDE", "FGHIJ", "KLMNO", "PQRST", "UVWXY"]) == 0.4
    assert ruler.score("cwe", "", ["word"]) == 0.0
    assert ruler.string_match_all("a\x00b", ["a\nb"]) == 1.0


def test_part_matches_are_one_where_any_reference_is_found() -> None:
    assert ruler.score("qa_1", "in the Netherlands", ["France", "the netherlands"]) == 1.0
    assert ruler.score("qa_2", "no", ["yes"]) == 0.0


def test_an_unknown_task_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'niah_single_1'"):
        ruler.score("niah_singel_1", "", ["a"])


def test_the_frame_of_a_chat_counts_and_stands_around_the_question(given: ruler.Texts) -> None:
    frame = ruler.Frame("<|user|>\n" * 30, "<|end|>\n<|assistant|>\n")
    plain = examples("niah_single_1", given, 1024)[0]
    framed = examples("niah_single_1", given, 1024, frame=frame)[0]
    assert framed.context.startswith(frame.before)
    asked, answer = framed.question.split(frame.after)
    assert asked.endswith("mentioned in the provided text?")
    assert answer.startswith(" The special magic number for")
    assert framed.tokens <= 1024
    assert len(framed.context.splitlines()) < 30 + len(plain.context.splitlines())


def test_a_context_too_small_for_a_task_is_refused_by_name(given: ruler.Texts) -> None:
    with pytest.raises(InputError, match=r"cwe-256-0001: .* takes \d+ tokens .* is 256"):
        examples("cwe", given, 256)[1]


@pytest.mark.parametrize("seed", range(30))
def test_the_largest_fitting_size_is_found_with_few_measurements(seed: int) -> None:
    draw = np.random.default_rng(seed)
    lengths = np.cumsum(draw.integers(0, 80, 3000)) + draw.integers(0, 200)
    smallest, last = int(draw.integers(0, 40)), int(draw.integers(1500, 2999))
    limit = int(draw.integers(0, 130_000))
    calls = 0

    def measure(size: int) -> int:
        nonlocal calls
        calls += 1
        return int(lengths[size])

    fitting = [size for size in range(smallest, last + 1) if lengths[size] <= limit]
    expected = fitting[-1] if fitting else None
    assert largest_fitting(measure, range(smallest, last + 1), limit) == expected
    assert calls <= 2 * np.log2(3000)


PUBLISHED = {
    "cwe": "cwe_utils.py",
    "fwe": "fwe_utils.py",
    "vt": "vt_utils.py",
    "qa_1": "qa_utils.py",
    "niah_multivalue": "niah_utils.py",
}


@pytest.mark.parametrize("task", PUBLISHED)
def test_prompts_are_those_of_the_harness(task: str, given: ruler.Texts) -> None:
    """Templates as lm-evaluation-harness has them, read from its source."""
    source = Path(
        str(distribution("lm_eval").locate_file(f"lm_eval/tasks/ruler/{PUBLISHED[task]}"))
    )
    tree = ast.parse(source.read_text(encoding="utf-8"))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict | ast.Constant):
            found[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
    template, prefix = found.get("TEMPLATE"), ""
    if "CONFIG" in found:
        published = found["CONFIG"].get("variable_tracking", found["CONFIG"])
        template, prefix = published["template"], published["answer_prefix"].strip()
        assert published["tokens_to_generate"] == GENERATED[task]
    example = examples(task, given, 2048 if task != "qa_1" else 512)[0]
    template = str(template)
    for field in ("type_needle_v", "query", "num_v"):
        pattern = {"type_needle_v": "numbers", "num_v": "5"}.get(field)
        template = template.replace(f"{{{field}}}", pattern or "\0")
        prefix = prefix.replace(f"{{{field}}}", pattern or "\0")
    expected = re.escape(f"{template} {prefix}".strip())
    expected = expected.replace(re.escape("{context}"), "(?s:.+)").replace(re.escape("\0"), ".+")
    assert re.search(f"{expected}(?: .*)?$", example.context + example.question)
