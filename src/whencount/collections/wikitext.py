"""Plain paragraphs out of MediaWiki markup, as far as reading and retrieval need."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import regex

_COMMENT = regex.compile(r"<!--.*?(?:-->|\Z)", regex.DOTALL)
_REFERENCE = regex.compile(
    r"<ref\b[^<>]*/\s*>|<ref\b[^<>]*>.*?</ref\s*>", regex.DOTALL | regex.IGNORECASE
)
# Elements whose content is no prose.
_ELEMENT = regex.compile(
    r"<(math|gallery|timeline|imagemap|source|syntaxhighlight|pre|code|hiero|score|chem"
    r"|references|includeonly|table)\b[^<>]*(?:/\s*>|>.*?</\1\s*>)",
    regex.DOTALL | regex.IGNORECASE,
)
_TAG = regex.compile(r"</?[a-zA-Z][^<>]*>")
_TEMPLATE = regex.compile(r"\{\{((?:(?!\{\{|\}\}).)*+)\}\}", regex.DOTALL)
_TABLE = regex.compile(r"^[ \t:*#]*\{\|(?:(?!\{\||^[ \t]*\|\}).)*+^[ \t]*\|\}",
                       regex.DOTALL | regex.MULTILINE)  # fmt: skip
_LINK = regex.compile(r"\[\[((?:[^\[\]]|\[(?!\[)|\](?!\]))*+)\]\]")
_HIDDEN_LINK = regex.compile(
    r"\s*(?:(?:file|image|category|media)\s*:|[a-z]{2,3}(?:-[a-z]+)*:[^|]*$)", regex.IGNORECASE
)
_EXTERNAL_LINK = regex.compile(r"\[(?:https?:|ftp:|mailto:)?//[^\s\]]+\s*([^\]]*)\]")
_BARE_ADDRESS = regex.compile(r"https?://[^\s<>\[\]]+")
_QUOTES = regex.compile(r"'{2,}")
_MAGIC_WORD = regex.compile(r"__[A-Z]+__")
_HEADING = regex.compile(r"^(={2,6})\s*(.+?)\s*\1\s*$")
_SPACES = regex.compile(r"\s+")
_EMPTY_BRACKETS = regex.compile(r"\(\s*[,;:]*\s*(?:[,;:]\s*)*\)|\[\s*\]")
_OPEN_BRACKET = regex.compile(r"\(\s*[,;:]\s*")
_BEFORE_STOP = regex.compile(r"\s+([,.;:!?)])")


@dataclass(frozen=True)
class Section:
    """A heading and the paragraphs directly below it; the lead of an article has no heading."""

    heading: str
    paragraphs: list[str]


def sections(markup: str) -> list[Section]:
    """Split an article into sections of plain paragraphs.

    Comments, references, templates, tables, files, categories and formulas are removed; links
    leave their shown text. A line of running text is a paragraph, as MediaWiki has it; list items
    are none.
    """
    result = [Section("", [])]
    for line in _without_blocks(markup).splitlines():
        heading = _HEADING.match(line)
        if heading:
            result.append(Section(plain(heading.group(2)), []))
        elif not line.startswith(("*", "#", ":", ";")):
            text = plain(line)
            if text:
                result[-1].paragraphs.append(text)
    return result


def plain(markup: str) -> str:
    """The shown text of a line without blocks (comments, templates, tables) and inner links."""
    text = _EXTERNAL_LINK.sub(r"\1", markup)
    text = _BARE_ADDRESS.sub(" ", text)
    text = html.unescape(_TAG.sub(" ", text))
    text = _MAGIC_WORD.sub("", _QUOTES.sub("", text))
    text = _SPACES.sub(" ", text).strip()
    # What templates and references leave behind.
    text = _OPEN_BRACKET.sub("(", _EMPTY_BRACKETS.sub("", text))
    text = _BEFORE_STOP.sub(r"\1", text)
    return _SPACES.sub(" ", text).strip(" |")


def _without_blocks(markup: str) -> str:
    text = _COMMENT.sub("", markup)
    text = _REFERENCE.sub("", text)
    text = _ELEMENT.sub("", text)
    # Links first: a bar inside a link does not separate the arguments of a template around it.
    text = _innermost_first(_LINK, _shown, text)
    text = _innermost_first(_TEMPLATE, _template_text, text)
    text = _innermost_first(_TABLE, "", text)
    # What is left of unbalanced tables.
    return "\n".join(_kept_lines(text))


def _innermost_first(
    pattern: regex.Pattern[str],
    replacement: str | Callable[[regex.Match[str]], str],
    text: str,
) -> str:
    replaced = 1
    while replaced:
        text, replaced = pattern.subn(replacement, text)
    return text


def _template_text(template: regex.Match[str]) -> str:
    # Quantities and foreign words are part of a sentence; nearly all else is apparatus.
    name, *arguments = (part.strip() for part in template.group(1).split("|"))
    arguments = [argument for argument in arguments if "=" not in argument]
    if name.lower() in ("convert", "cvt") and len(arguments) >= 2:
        return " ".join(arguments[:2])
    if name.lower() in ("lang", "transl") and len(arguments) >= 2:
        return arguments[-1]
    if name.lower() == "quote" and arguments:
        return arguments[0]
    return ""


def _shown(link: regex.Match[str]) -> str:
    inside = link.group(1)
    target, _, label = inside.partition("|")
    return "" if _HIDDEN_LINK.match(inside) else label or target


def _kept_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.lstrip().startswith(("{|", "|", "!", "}}", "{{")):
            yield line
