"""The page of the browser: tables in, one HTML file out that works without a server or network.

Everything that comes from data is JSON in a block that no browser runs, with `<`, `>` and `&`
written as escapes, and reaches the page as text nodes alone. The content security policy lets
nothing run but the script of the page, named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whencount.files import atomic_file

if TYPE_CHECKING:
    import pandas as pd

_HERE = Path(__file__).parent
_ESCAPES = str.maketrans({one: f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"})


def write_browser(
    features: pd.DataFrame, examples: pd.DataFrame, settings: Mapping[str, Any], path: str | Path
) -> None:
    """Write the page, whole or not at all; equal tables give equal bytes.

    Args:
        features: features.parquet of the study of latent terms.
        examples: feature_examples.parquet.
        settings: study, model, collection and seed, as a reader is told.
        path: the HTML file.

    Raises:
        InputError: the place cannot be written.
    """
    from jinja2 import Environment

    script, style = _asset("page.js"), _asset("page.css")
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    page = environment.from_string(_asset("page.html.j2")).render(
        settings=settings,
        version=version("whencount"),
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        data=page_data(features, examples, settings),
    )
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def page_data(features: pd.DataFrame, examples: pd.DataFrame, settings: Mapping[str, Any]) -> str:
    """The data of the page: JSON that can stand in a script element, whatever texts hold.

    Texts stand once, however many features they are an example of. `key` names the labels of a
    person: another dictionary has other features, so it has labels of its own.
    """
    texts: dict[tuple[str, str, str], int] = {}
    lists: dict[tuple[str, int], list[list[Any]]] = {}
    lines = zip(*(examples[name] for name in _EXAMPLE_COLUMNS), strict=True)
    for kind, feature, identifier, text, weight, spans in lines:
        number = texts.setdefault((str(kind), str(identifier), str(text)), len(texts))
        entry = [number, round(float(weight), 4), json.loads(spans)]
        lists.setdefault((str(kind), int(feature)), []).append(entry)
    listed = []
    for line in features.to_dict("records"):
        feature = int(line["feature"])
        listed.append(
            {
                "n": feature,
                "df": int(line["df"]),
                "idf": round(float(line["idf"]), 4),
                "w": round(float(line["mean_weight"]), 4),
                "p": lists.get(("passage", feature), []),
                "q": lists.get(("query", feature), []),
            }
        )
    content: dict[str, Any] = {
        **settings,
        "documents": int(features["documents"].iloc[0]) if len(features) else 0,
        "live": int(features["live"].iloc[0]) if len(features) else 0,
        "features": listed,
        "texts": [[identifier, text] for _, identifier, text in texts],
    }
    plain = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    plain = plain.encode("utf-8", "replace").decode()
    digest = hashlib.sha256(plain.encode()).hexdigest()[:16]
    content["key"] = f"whencount-features-{digest}"
    plain = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    plain = plain.encode("utf-8", "replace").decode()
    return plain.translate(_ESCAPES)


_EXAMPLE_COLUMNS = ("kind", "feature", "id", "text", "weight", "spans")


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a content security policy calls an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
