"""Sentences that say that there is no answer, and nothing else.

What a refusal is about may hold names and numbers ("The documents do not mention the revenue of
2023"). What comes after it, behind a comma, a colon or a conjunction, must say nothing either: it
may be a further refusal or a list, but as soon as it could be a statement, the sentence is one.
"""

import re
from collections.abc import Callable, Iterator

__all__ = ["DOCUMENTS", "adds_to", "any_of", "refuses"]


def any_of(*patterns: str) -> str:
    """Join patterns to one that matches any of them.

    Args:
        *patterns: Regular expressions.

    Returns:
        A group without a number.
    """
    return f"(?:{'|'.join(patterns)})"


DOCUMENTS = (
    r"(?:(?:provided|given|available|retrieved|supplied|above|attached|current|following) )*"
    + any_of(
        "documents?", "context", "passages?", "sources?", "texts?", "excerpts?", "articles?",
        "materials?", "search results", "knowledge base", "documentation",
        "information(?: provided| given| available| above)?",
    )
    + r"(?: \d{1,2})?(?: (?:provided|given|available|above|i have|you (?:provided|gave|shared)))?"
)  # fmt: skip
"""What answers call the documents they were made from, lower case."""

_THE = "(?:the |this |these |those |your |any of the )?"
_TELL = any_of(
    "say", "mention", "contain", "include", "provide", "specify", "state", "discuss", "address",
    "cover", "give", "indicate", "answer", "have", "offer", "describe", "explain", "list", "tell",
    "reveal", "disclose", "support", "appear", "seem", "refer",
)  # fmt: skip
_TOLD = any_of(
    "mentioned", "specified", "stated", "provided", "discussed", "given", "included", "covered",
    "available", "addressed", "described", "found", "contained", "answered", "present",
)  # fmt: skip
_NOT = "(?: not|n't|n\u2019t)"
_KNOWLEDGE = "(?:information|context|access|details|data|knowledge)"
_SORRY = "(?:unfortunately|regrettably|sorry|i'm sorry|i am sorry|i apologi[sz]e|however|but)"
_THUS = any_of(
    "therefore", "thus", "hence", "so", "and", "also", "additionally", "furthermore", "answer:",
    "because", "since", "note(?::| that)", "please note that",
    "it(?:'s|\u2019s| is) (?:important to note|worth noting) that",
    "as an ai(?: language)?(?: model| assistant| system| chatbot)?",
)  # fmt: skip
_LEAD = (
    rf"(?:{_SORRY}[,.]? (?:but )?|{_THUS},? )*"
    rf"(?:(?:based on|according to|from|in) (?:the |this |these )?{DOCUMENTS},? )?"
)
_ENGLISH = any_of(
    rf"{_THE}{DOCUMENTS} (?:do|does|did){_NOT} (?:\w+ )?{_TELL}",
    rf"none of the {DOCUMENTS} (?:\w+ )?{_TELL}s?\b",
    r"there (?:is|was|are) (?:no|not enough|insufficient) (?:\w+ )?"
    r"(?:information|mention|details)\b",
    rf"(?:no|not enough|insufficient) (?:\w+ )?(?:information|details|mention)\b[^,;:]{{0,80}}"
    rf"(?:{DOCUMENTS}|found|available|provided|given)",
    rf"i (?:really |simply )?do{_NOT} (?:know|have (?:\w+ ){{0,2}}{_KNOWLEDGE})",
    r"i(?:'m| am|\u2019m) not (?:sure|certain|able to)",
    r"i(?:'m| am|\u2019m| was)? ?(?:cannot|can't|can\u2019t|could not|couldn't|unable to) "
    r"(?:\w+ )?"
    + any_of(
        "answer", "find", "determine", "provide", "say", "tell", "confirm", "verify", "help",
        "assist", "locate", "see", "give", "access", "comply",
    ),
    r"(?:it is )?unable to (?:answer|provide|determine)\b",
    r"it (?:is|was) (?:not possible|impossible|not clear|unclear) "
    r"(?:to (?:say|determine|tell|answer)|from)",
    rf"[^,;:]{{1,120}}\b(?:is|are|was|were){_NOT} (?:\w+ly )?{_TOLD} (?:\w+ )?(?:in|by|within) "
    rf"{_THE}{DOCUMENTS}",
    r"[^,;:]{1,120}\bcannot be (?:determined|answered|found|confirmed|verified) "
    rf"(?:from|with|in|based on|using) {_THE}{DOCUMENTS}",
    r"(?:the|this|that|your) question cannot be answered\b",
    rf"(?:answer )?not {_TOLD}\W*$",
    r"(?:unknown|unanswerable|n/a|(?:i'm|i am) sorry)\W*$",
)  # fmt: skip
_OTHERS = any_of(
    "(?:leider )?ich wei(?:ß|ss) (?:es |das )?(?:leider )?nicht",
    "das wei(?:ß|ss) ich (?:leider )?nicht",
    r"(?:die|aus den|in den|der|im) (?:\w+ )?(?:dokumenten?|unterlagen|quellen|texten?|kontext)\b"
    r".{0,80}\b(?:nicht|keine?r?n?)\b",
    "(?:leider )?(?:gibt es|es gibt|es liegen) (?:dazu |hierzu )?keine (?:informationen|angaben)",
    r"je ne sais pas\b",
    r"(?:les documents?|le contexte) n[e'\u2019].{1,60}\bpas\b",
    "(?:il n'y a )?aucune information",
    r"(?:lo siento, )?(?:pero )?no (?:lo )?sé\b",
    r"(?:los documentos|el contexto) no\b",
    "no hay información",
    r"non (?:lo )?so\b",
    r"i documenti non\b",
    "(?:non c'è )?nessuna informazione",
    r"não sei\b",
    r"os documentos não\b",
    "não há informa",
    r"ik weet het niet\b",
    r"(?:in )?de documenten\b.{1,60}\b(?:niet|geen)\b",
    r"(?:я )?не знаю\b",
    r"(?:в документах (?:нет|не)|документы не)\b",
    "我不(?:知道|清楚)",
    ".{0,8}(?:文档|文件|资料|上下文)中?并?(?:没有|未)",
    "无法(?:回答|确定)",
    "(?:わかり|分かり)ません",
    ".{0,10}(?:文書|資料|ドキュメント)には?.{0,40}(?:ありません|いません)",
    "(?:잘 )?모르겠습니다",
    "문서에.{0,40}(?:없습니다|않습니다)",
    "لا أ(?:عرف|علم)",
    "لا تذكر (?:الوثائق|المستندات)",
    "(?:الوثائق|المستندات) لا ",
    "मुझे नहीं पता",
)
_REFUSAL = re.compile(f"{_LEAD}(?P<english>{_ENGLISH})|{_OTHERS}", re.IGNORECASE)
_LONGEST = 400  # characters of a sentence that is nothing but a refusal

_WHETHER = any_of("who", "whom", "whose", "what", "when", "where", "which", "why", "how", "whether")
_FINITE = r"(?:is|are|was|were|has|had|have|did|does|will|can|must|should)"
_CONTRAST = r"(?:but|although|though|however|yet|while|whereas|except|aber|mais|pero|ma)\b"
_PART = re.compile(
    r"[;:\uff0c\uff1a\uff1b] *|, *| [\u2013\u2014-]+ |[\u2013\u2014]|(?=\u4f46)"
    rf"|\s(?={_CONTRAST})|\s(?=(?:because|since|so|therefore)\s)"
    rf"|\s(?=and (?!{_WHETHER}\b)(?:\S+ ){{1,6}}?{_FINITE}\b)",
    re.IGNORECASE,
)
_INSIDE_A_NUMBER = re.compile(r"(?<=\d), ?(?=\d{3,4}\b)|(?<=\d):(?=\d)")
_LISTED = re.compile(r"(?:and|or|nor|as well as)\b", re.IGNORECASE)
_STATES = re.compile(
    rf"\b{_FINITE}\b|\d|(?:and|or) (?:it|he|she|they|there|we|you|this|that)\b", re.IGNORECASE
)
_HARMLESS = re.compile(
    rf"(?:{_SORRY}|please|too|either|at (?:this|the) (?:time|moment)|at all)\W*$"
    r"|please (?:provide|share|give|try|check|rephrase|clarify)\b"
    r"|(?:and )?i(?:'ll| can| will| would) (?:be (?:happy|glad) to )?"
    r"(?:help|look|assist|search|try)\b"
    rf"|(?:(?:and|or) )?{_WHETHER}\b|(?:such as|including)\b"
    r"|(?:wie|was|wer|wann|wo|ob|welche\w*|warum|dass|que|qui|quel\w*|o\u00f9|quand|comment|si"
    r"|qu\u00e9|cu\u00e1l|qui\u00e9n|cu\u00e1ndo|d\u00f3nde|c\u00f3mo|che|quando|quanto)\b",
    re.IGNORECASE,
)


def refuses(text: str) -> bool:
    """Tell whether a sentence says that there is no answer, and nothing else.

    Args:
        text: A sentence, free of markup.

    Returns:
        True if it does, in English or one of the forms known from some other languages.
    """
    match = _REFUSAL.match(text) if len(text) <= _LONGEST else None
    return match is not None and not any(adds_to(text[match.end() :], _REFUSAL.match))


def adds_to(rest: str, more_of_the_kind: Callable[[str], object]) -> Iterator[str]:
    """Find what may be a statement behind a refusal or an offer.

    Args:
        rest: What follows it. What hangs on directly, up to a comma or the like, belongs to it.
        more_of_the_kind: Tells of a further part that it is another refusal or offer.

    Yields:
        The further parts that are neither that, nor the rest of a list, nor a phrase known to
        state nothing.
    """
    _, *parts = (part.strip() for part in _PART.split(_INSIDE_A_NUMBER.sub("", rest)))
    parts = [part for part in parts if any(map(str.isalnum, part))]
    is_list = bool(parts) and bool(_LISTED.match(parts[-1]))
    for part in parts:
        in_list = is_list and not _STATES.search(part)
        if not (in_list or _HARMLESS.match(part) or more_of_the_kind(part)):
            yield part
