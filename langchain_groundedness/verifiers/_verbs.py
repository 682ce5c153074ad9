"""Which words may be the verb of a clause, as far as a list and an ending can tell."""

import re
from functools import lru_cache

from langchain_groundedness.words import stem

__all__ = ["AUXILIARIES", "is_verb"]

AUXILIARIES = {
    form: family
    for family, forms in {
        "be": "am is are was were",
        "have": "has have had",
        "do": "do does did",
        "can": "can could cannot",
        "will": "will would",
        "may": "may might",
        "must": "must",
        "shall": "shall should",
    }.items()
    for form in forms.split()
}
"""What a clause that leaves its verb out may keep of it, and the verb that it is a form of."""
_VERBS = frozenset(
    map(
        stem,
        """
        accept apply arrive attend become beat begin belong boil borrow build buy call carry charge
        close come consist contain cost cover cross deliver demand depart drink drive earn eat
        employ enjoy enter export face fall feed finish fit fly follow gain get give go grow hold
        import include join keep last lead learn leave lend let lie like live lose make marry
        measure move need offer open order own pay play prefer premiere produce provide publish
        reach receive refund release require ride rise run sell send serve ship sit sleep speak
        spend stand start stay stop store study supply support swim take teach travel use visit
        vote want wear weigh win work write
        """.split(),  # noqa: SIM905  (a word list reads better as words)
    )
)
_PAST = re.compile(r"[a-z]{3,}ed")


@lru_cache(maxsize=4096)
def is_verb(word: str) -> bool:
    """Tell whether a word may be the verb of a clause.

    Args:
        word: Any word, as it was written.

    Returns:
        True for auxiliaries, for some common verbs, and for what looks like a past tense.
    """
    folded = word.casefold()
    return (
        folded in AUXILIARIES
        or stem(folded) in _VERBS
        or (word == folded and _PAST.fullmatch(folded) is not None)
    )
