"""YAML files that people write: plain values come back, anything else is told in a sentence."""

from __future__ import annotations

import pytest

from whencount.errors import InputError
from whencount.yaml_files import read_yaml


def test_plain_values_aliases_and_merges_are_read() -> None:
    content = b"a: &a {k1: 1.2, name: x}\nb: {<<: *a, k1: 2}\nc: [*a, null, true, 3]\n"
    a = {"k1": 1.2, "name": "x"}
    assert read_yaml(content, "f.yaml") == {
        "a": a,
        "b": {"k1": 2, "name": "x"},
        "c": [a, None, True, 3],
    }
    assert read_yaml(b"", "f.yaml") is None


def bomb(levels: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)
    ]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        # Nine lines that stand for 10^9 values: looking at each would take hours.
        (bomb(9), "more than 100,000 values once its aliases are followed"),
        (b"a: &a\n  b: *a\n", "line 1: not valid YAML: an alias stands inside what it names"),
        (b"a: &a [*a]\n", "an alias stands inside what it names"),
        (b"[" * 5_000 + b"]" * 5_000, "nested too deeply"),
        (b"{a: " * 3_000 + b"1" + b"}" * 3_000, "nested too deeply"),
        (b"a: 1\nb: {c: 1, c: 2}\n", "line 2: not valid YAML: the key 'c' stands twice"),
        (bytes(range(256)), "not valid YAML"),
        ("caf\xe9: 1".encode("latin-1"), "not valid YAML"),
        (b"a: \0\n", "not valid YAML"),
        (b"a: 2026-13-45\n", "not valid YAML: month must be in 1..12"),
        (b"a: " + b"1" * 5_000, "not valid YAML"),
        (b"a: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        (b"a: 1\n---\nb: 2\n", "another document"),
        (b"a: [1\n", "not valid YAML"),
    ],
)
def test_what_is_not_plain_is_told_with_the_file(content: bytes, told: str) -> None:
    with pytest.raises(InputError) as raised:
        read_yaml(content, "study.yaml")
    assert str(raised.value).startswith("study.yaml")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_few_aliases_are_followed() -> None:
    assert len(read_yaml(bomb(4), "f.yaml")["a3"]) == 10
