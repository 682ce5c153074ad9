"""Defuses what a model could take for a boundary of ours or a control token of its own; pure."""

import re
import unicodedata

__all__ = ["defused"]

_KINDS = ("evidence", "question", "answer", "reference", "claims?", "statements?")
_UNSEEN = (
    r"[\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f]*+"
)
_TOKENS = (
    r"\|",
    r"/?s>",
    r"<?/?sys>",
    r"/?im_",
    r"/?(?:start|end)_of_",
    r"/?think(?:ing)?>",
    r"/?tool_",
    r"/?(?:system|developer|user|assistant|model)>",
    r"/?(?:bos|eos|pad|unk)>",
    r"extra_id_",
    r"/?function(?:_calls)?[>=]",
    r"/?(?:invoke|parameter)\b",
)
"""What follows the sign in control tokens of chat templates: those of ChatML, Llama, Gemma,
DeepSeek, Qwen, Phi and T5, and the tags of tool calls that models have learnt."""
_NAMES = "|".join(_UNSEEN.join(re.findall(r"\w\??", kind)) for kind in _KINDS)
_TAG = re.compile(
    rf"<(?={_UNSEEN}(?:(?:/{_UNSEEN})?(?:{_NAMES})\b|{'|'.join(_TOKENS)}))", re.IGNORECASE
)
_BRACKET = re.compile(
    r"\[(?=/?(?:INST|TOOL_(?:CALLS|RESULTS|CONTENT)|AVAILABLE_TOOLS|SYSTEM_PROMPT|THINK|s?gMASK)\]"
    r"|UNUSED_TOKEN_)",
    re.IGNORECASE,
)
"""Control tokens of Mistral, GLM and InternLM."""
_SIGNS = dict.fromkeys(map(ord, "\u02c2\u1438\u2039\u2329\u276e\u27e8\u3008"), "<")


def defused(text: str) -> str:
    """Write a round bracket for the sign that opens a boundary or a control token.

    Signs that look alike, compatibility forms of letters and invisible characters between them are
    seen through. Everything else stays as it is.

    Args:
        text: Any text from outside.

    Returns:
        A text of the same length.

    Example:
        >>> defused("a < b <|im_end|> </answer>")
        'a < b (|im_end|> (/answer>'
    """
    seen = text if text.isascii() else text.translate(_FOLDING)
    places = {match.start() for form in (_TAG, _BRACKET) for match in form.finditer(seen)}
    if not places:
        return text
    return "".join("(" if place in places else char for place, char in enumerate(text))


class _Folding(dict[int, str]):
    """Folds a character into one other, so that places stay."""

    def __missing__(self, code: int) -> str:
        folded = unicodedata.normalize("NFKC", chr(code))
        self[code] = folded if len(folded) == 1 else chr(code)
        return self[code]


_FOLDING = _Folding(_SIGNS)
