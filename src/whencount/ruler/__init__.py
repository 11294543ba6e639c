"""The 13 tasks of RULER (Hsieh et al. 2024, arXiv:2404.06654), generated anew for any tokenizer.

from whencount import ruler

texts = ruler.Texts(prose=ruler.read_prose(haystack), questions={"qa_1": ruler.read_squad(path)})
examples = ruler.open_examples(
    "niah_single_1", context=4096, number=500, encode=encode, texts=texts, seed=0
)
example = examples[17]                                  # made when it is asked for
ruler.score(example.task, prediction, example.references)   # 0..1
"""

from whencount.ruler.examples import Examples, open_examples
from whencount.ruler.model import Example, Frame, Question, Questions, Texts
from whencount.ruler.prose import open_prose, read_prose, write_prose
from whencount.ruler.questions import read_hotpotqa, read_questions, read_squad
from whencount.ruler.registry import TASKS, Unavailable, unavailable
from whencount.ruler.scoring import score, string_match_all, string_match_part

__all__ = [
    "TASKS",
    "Example",
    "Examples",
    "Frame",
    "Question",
    "Questions",
    "Texts",
    "Unavailable",
    "open_examples",
    "open_prose",
    "read_hotpotqa",
    "read_prose",
    "read_questions",
    "read_squad",
    "score",
    "string_match_all",
    "string_match_part",
    "unavailable",
    "write_prose",
]
