"""Which sentences of an answer state something that documents can support or contradict.

Only what is surely no statement is left out: a sentence that is wrongly kept is checked in vain,
one that is wrongly dropped is never checked.
"""

import re

__all__ = ["is_checkable", "refuses", "without_interjection"]


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_DOCUMENTS = (
    r"(?:(?:provided|given|available|retrieved|supplied|above|attached|current|following) )*"
    + _any(
        "documents?", "context", "passages?", "sources?", "texts?", "excerpts?", "articles?",
        "materials?", "search results", "knowledge base", "documentation",
        "information(?: provided| given| available| above)?",
    )
    + r"(?: \d{1,2})?(?: (?:provided|given|available|above|i have|you (?:provided|gave|shared)))?"
)  # fmt: skip
_THE = "(?:the |this |these |those |your |any of the )?"
_TELL = _any(
    "say", "mention", "contain", "include", "provide", "specify", "state", "discuss", "address",
    "cover", "give", "indicate", "answer", "have", "offer", "describe", "explain", "list", "tell",
    "reveal", "disclose", "support", "appear", "seem", "refer",
)  # fmt: skip
_TOLD = _any(
    "mentioned", "specified", "stated", "provided", "discussed", "given", "included", "covered",
    "available", "addressed", "described", "found", "contained", "answered", "present",
)  # fmt: skip
_NOT = "(?: not|n't|n\u2019t)"
_KNOWLEDGE = "(?:information|context|access|details|data|knowledge)"
_SORRY = "(?:unfortunately|regrettably|sorry|i'm sorry|i am sorry|i apologi[sz]e|however|but)"
_THUS = _any(
    "therefore", "thus", "hence", "so", "also", "additionally", "furthermore", "answer:",
    "note(?::| that)", "please note that",
    "it(?:'s|\u2019s| is) (?:important to note|worth noting) that",
)  # fmt: skip
_LEAD = (
    rf"(?:{_SORRY}[,.]? (?:but )?|{_THUS},? )*"
    rf"(?:(?:based on|according to|from|in) (?:the |this |these )?{_DOCUMENTS},? )?"
)
_ENGLISH = _any(
    rf"{_THE}{_DOCUMENTS} (?:do|does|did){_NOT} (?:\w+ )?{_TELL}",
    rf"none of the {_DOCUMENTS} (?:\w+ )?{_TELL}s?\b",
    r"there (?:is|was|are) (?:no|not enough|insufficient) (?:\w+ )?"
    r"(?:information|mention|details)\b",
    rf"(?:no|not enough|insufficient) (?:\w+ )?(?:information|details|mention)\b.{{0,80}}"
    rf"(?:{_DOCUMENTS}|found|available|provided|given)",
    rf"i (?:really |simply )?do{_NOT} (?:know|have (?:\w+ ){{0,2}}{_KNOWLEDGE})",
    r"i(?:'m| am|\u2019m) not (?:sure|certain|able to)",
    r"i(?:'m| am|\u2019m| was)? ?(?:cannot|can't|can\u2019t|could not|couldn't|unable to) "
    r"(?:\w+ )?"
    + _any(
        "answer", "find", "determine", "provide", "say", "tell", "confirm", "verify", "help",
        "assist", "locate", "see", "give", "access", "comply",
    ),
    r"(?:it is )?unable to (?:answer|provide|determine)\b",
    r"it (?:is|was) (?:not possible|impossible|not clear|unclear) "
    r"(?:to (?:say|determine|tell|answer)|from)",
    rf".{{1,120}}\b(?:is|are|was|were){_NOT} (?:\w+ly )?{_TOLD} (?:\w+ )?(?:in|by|within) "
    rf"{_THE}{_DOCUMENTS}",
    r".{1,120}\bcannot be (?:determined|answered|found|confirmed|verified) "
    rf"(?:from|with|in|based on|using) {_THE}{_DOCUMENTS}",
    rf"(?:answer )?not {_TOLD}\W*$",
    r"(?:unknown|unanswerable|n/a|(?:i'm|i am) sorry)\W*$",
    r"as an ai\b",
)  # fmt: skip
_OTHERS = _any(
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
_REFUSAL = re.compile(f"{_LEAD}{_ENGLISH}|{_OTHERS}", re.IGNORECASE)
_GOES_ON = re.compile(
    r"[,;\u2013\u2014] ?(?:but|which|who|although|though|however|yet|while|whereas)\b"
    r"|[,;] (?:aber|mais|pero|ma)\b|, and (?:it|he|she|they|there|the \w+) |; |但"
    r"|\b(?:but|however|although) "
)
_COURTESY = _any(
    "hi", "hello", "hey", "dear", "good (?:morning|afternoon|evening|day)", "greetings", "welcome",
    "thanks", "thank you", "you're welcome", "cheers", "(?:best|kind) regards", "sincerely",
    "sure(?: thing)?", "certainly", "of course", "absolutely", "okay", "ok", "no problem",
    "(?:(?:that's |what )?an? )?(?:great|good|excellent|interesting) question",
    "my apologies", "sorry", "i apologi[sz]e", "hallo", "guten (?:tag|morgen|abend)", "danke",
    "bonjour", "merci", "hola", "gracias", "ciao", "你好", "您好", "こんにちは", "مرحبا",
)  # fmt: skip
_COURTESY_TAIL = (
    r"(?: there| everyone| all| again| very much| so much| to you| you"
    r"| for (?:your |the |asking|reaching)[\w ]{0,30})?"
)
_OFFER = _any(
    r"(?:please,? )?(?:do )?let me know\b",
    r"(?:please,? )?feel free to\b",
    rf"(?:please,? )?do{_NOT} hesitate\b",
    r"would you like\b",
    r"is there anything\b",
    r"(?:i'm|i am|i\u2019m|i'd be|i would be) (?:always )?(?:here|happy|glad|available) to\b",
    r"(?:i )?hope (?:this|that|it|these) (?:helps?|answers?|clarifies|information)\b",
    r"have a (?:great|nice|good|wonderful)\b",
    "happy to help",
    r"if you (?:have|need|want|would like|'d like)\b.{0,120}\b"
    "(?:let me know|ask|feel free|hesitate|contact|reach out|happy to|glad to|i can)\\b",
    "i can (?:also )?help (?:you )?(?:with|find)",
    "lassen sie (?:es )?mich wissen",
    "n'hésitez pas",
    "no dudes? en",
)
_META = (
    r"(?:here (?:is|are)|here's|here\u2019s|below (?:is|are)) (?:an?|the|your|some|what)\b"
    r"(?: [\w-]+){0,3} "
    + _any(
        "summary", "answer", "list", "overview", "breakdown", "information", "details", "points",
        "explanation", "response", "steps", "facts", "found",
    )
    + r"\b.{0,60}$"
)  # fmt: skip
_STATES_NOTHING = re.compile(f"{_OFFER}|{_META}", re.IGNORECASE)
_GREETS = re.compile(rf"{_COURTESY}\b", re.IGNORECASE)
_GREETS_ON = re.compile(_COURTESY_TAIL, re.IGNORECASE)
_INTERJECTION = re.compile(
    rf"(?:{_COURTESY}{_COURTESY_TAIL}[,.!:;\u2013\u2014-]+\s+(?=\w))?"
    rf"(?:(?:based on|according to) (?:the |these |this )?{_DOCUMENTS}(?: \d{{1,2}})?,\s+(?=\w))?",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?\uff1f\u061f][\s)*_]*$")
_QUOTED_QUESTION = re.compile(r"^[\"'\u201c\u00ab].*[?\uff1f\u061f][\"'\u201d\u00bb]$", re.DOTALL)
_LONGEST = 400  # characters of a sentence that is nothing but courtesy, an offer or a refusal


def without_interjection(text: str) -> str:
    """Drop what stands before a statement and says nothing: `Sure,`, `Based on the documents,`.

    Args:
        text: A sentence.

    Returns:
        The rest of it, with a capital; the sentence itself if nothing stands before it.
    """
    match = _INTERJECTION.match(text)
    if match is None or not match.end():
        return text
    rest = text[match.end() :]
    return rest[0].upper() + rest[1:]


def is_checkable(text: str) -> bool:
    """Tell whether a sentence states something.

    Args:
        text: A sentence, free of markup.

    Returns:
        False for questions, lead-ins that end in a colon, greetings, offers, refusals, and text
        without a letter or digit.
    """
    if not any(map(str.isalnum, text)):
        return False
    if text.endswith((":", "\uff1a")) or _QUESTION.search(text) or _QUOTED_QUESTION.match(text):
        return False
    if len(text) > _LONGEST:
        return True
    if _STATES_NOTHING.match(text) or _is_courtesy(text):
        return False
    return not refuses(text)


def refuses(text: str) -> bool:
    """Tell whether a sentence says that there is no answer, and nothing else.

    Args:
        text: A sentence, free of markup.

    Returns:
        True if it does, in English or one of the forms known from some other languages.
    """
    match = _REFUSAL.match(text) if len(text) <= _LONGEST else None
    return match is not None and not _GOES_ON.search(text, match.end())


def _is_courtesy(text: str) -> bool:
    match = _GREETS.match(text)
    if match is None:
        return False
    rest = text[match.end() :].strip(" \t,.!:;\u2013\u2014-\u3002\uff01")
    tail = _GREETS_ON.fullmatch(f" {rest}" if rest else "")
    return tail is not None or (bool(rest) and _is_courtesy(rest))
