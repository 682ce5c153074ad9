"""Decides which sentences of an answer are claims that documents can support or contradict.

In doubt, a sentence is kept: one kept wrongly costs a check, one dropped wrongly is never checked.
"""

import re
from collections.abc import Iterator

from langchain_groundedness.claims.checkworthiness import is_checkworthy
from langchain_groundedness.text.words import content_words, fold

__all__ = [
    "declines",
    "is_checkable",
    "is_statement_as_heading",
    "may_be_skipped",
    "only_asks",
    "refuses",
    "without_interjection",
]

_WORD = re.compile(r"\w+")

_OPINIONS = frozenset(
    """
    amazing awesome beautiful charming cool delightful excellent exciting fantastic fascinating fun
    good great impressive interesting lovely nice pleasant remarkable truly very really wonderful
    worth seeing
    """.split()  # noqa: SIM905  (a word list reads better as words)
)

_LONGEST = 400  # characters of a sentence that only speaks to the reader


def any_of(*patterns: str) -> str:
    """Join patterns to one that matches any of them."""
    return f"(?:{'|'.join(patterns)})"


_NAME = (
    r"(?-i:(?:(?:Mr|Mrs|Ms|Dr|Prof)\.? )?[A-Z][\w'\u2019-]*(?: (?:and )?[A-Z][\w'\u2019-]*){0,2})"
)

_GREETING = any_of(
    "hi", "hello", "hey", "goodbye", "bye", "dear", "good (?:morning|afternoon|evening|day)",
    "greetings", "thanks", "thank you", "(?:you're|you\u2019re|you are) (?:very |most )?welcome",
    "(?:nice|pleased|great) to meet you", r"welcome(?: back)?(?: to [\w'\u2019 ]{1,40}(?=!))?",
    "(?:(?:that's |that\u2019s |that is |what )?an? )?(?:(?:very|really) )?"
    "(?:great|good|excellent|interesting|fair) (?:question|point|idea|choice)",
    "hallo", "guten (?:tag|morgen|abend)", "danke", "bonjour", "merci", "hola", "gracias", "ciao",
)  # fmt: skip
"""What a name may follow: "Hi Anna!"."""

_COURTESY = any_of(
    _GREETING, "congratulations", "sure(?: thing)?", "certainly", "of course", "absolutely",
    "okay", "ok", "no (?:problem|worries)", "my pleasure", "got it", "sounds (?:good|great)",
    "understood", "noted", "please", "(?:my )?apologies", "i apologi[sz]e",
    "(?:(?:i'm|i\u2019m|i am) )?(?:so |very )?sorry(?: to hear (?:that|this|it))?",
    "(?:(?:i'm|i\u2019m|i am) )?(?:so |very )?(?:glad|happy|pleased) "
    "(?:(?:that )?(?:you asked|i could help)|to (?:help|hear (?:that|it|from you)))",
    "i (?:understand|appreciate) (?:your|the|this|that|it)(?: [a-z]+)?",
    "你好", "您好", "こんにちは", "مرحبا",
)  # fmt: skip

_COURTESY_TAIL = (
    r"(?: there| everyone| all| at all| a lot| again| very much| so much| to you| you"
    r"| (?:for|about|with) (?:your |the |any |that|this|asking|reaching)[\w ]{0,30})?"
)

_I_AM = r"i(?: am|['\u2019]m)"

_NOT = r"(?: ?not|n['\u2019]t)"

DOCUMENTS = (
    r"(?:(?:provided|given|available|retrieved|supplied|above|attached|current|following) )*"
    + any_of(
        "documents?", "context", "passages?", "sources?", "texts?", "excerpts?", "articles?",
        "materials?", "search results", "knowledge base", "documentation",
        "information(?: provided| given| available| above)?",
    )
    + r"(?: \d{1,2})?(?: (?:provided|given|available|above|i have|you (?:provided|gave|shared)))?"
)  # fmt: skip
"""How answers refer to their documents, in lower case."""

_INTERJECTION = re.compile(
    rf"(?:{_GREETING},? {_NAME}(?:!\s+(?=\w)|,? (?:[\u2013\u2014-] )?(?=i\b))"
    rf"|{_COURTESY}{_COURTESY_TAIL}[,.!:;\u2013\u2014-]+\s+(?=\w)"
    rf"|(?:hi|hello|hey|dear) {_NAME},\s+(?=\w))?"
    rf"(?:(?:based on|according to) (?:the |these |this )?{DOCUMENTS}(?: \d{{1,2}})?,\s+(?=\w))?",
    re.IGNORECASE,
)

_QUESTION = re.compile(r"[?\uff1f\u061f][\s)*_]*$")

_QUOTED_QUESTION = re.compile(r"^[\"'\u201c\u00ab].*[?\uff1f\u061f][\"'\u201d\u00bb]$", re.DOTALL)

_TAG = re.compile(
    r", (?:right|correct|yes|no|ok|okay|eh|huh|(?:is|are|was|were|do|does|did|has|have|ca|wo)"
    r"(?:n['\u2019]t| not)? (?:it|he|she|they|we|you))\?\W*$",
    re.IGNORECASE,
)

_ASKS = re.compile(
    any_of(
        "who", "whom", "whose", "what", "when", "where", "which", "why", "how", "is", "are", "was",
        "were", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would",
        "should", "may", "might", "shall", "am",
    )
    + r"(?:n't|n\u2019t)?\b",
    re.IGNORECASE,
)  # fmt: skip

_TELLS = re.compile(r"(?:do|did) you (?:know|realize|realise)\b|have you heard\b", re.IGNORECASE)

_ADDRESSED = re.compile(r"\b(?:i|me|you|your)\b", re.IGNORECASE)

_BEFORE_QUESTION = re.compile(
    r"(?:(?:before|to|so|and|just)\b[^,]{0,40}, )?(?:(?:for|in|of|from|on|to|at|with) (?=wh))?",
    re.IGNORECASE,
)

_ASKS_BACK = re.compile(
    r"(?:do|did|are|were|would|is|was)(?:n't|n\u2019t)? "
    r"(?:you (?:mean|want|need|refer|ask|like|prefer|look)\w*|(?:this|it) (?:about|for))\b"
    r"|(?!.*\b(?:are|were|has|had|have|did|do|does|will|can|could|would|should|must)\b)"
    r"(?:(?:for|in|of|from|on|about|and) )?(?:what|which|who|whose|when|where|anything|something)\b"
    r"(?: [a-z]+){0,3}(?: (?:is|was) (?:it|this|that))?\W*$",
    re.IGNORECASE,
)
"""Asks what the reader means, or is no clause ("Which year?"): nothing in it is taken for true."""

_ENDS_SENTENCE = re.compile(r"\w[.!\u3002\uff01]\W*$")

_GIVES_NUMBER = re.compile(r"\w:\W*\d")

_FEWEST_WORDS = 4

_VERB = re.compile(r"\b(?:is|are|was|were|has|had|have)\b", re.IGNORECASE)


def without_interjection(text: str) -> str:
    """Drop an introductory phrase such as `Sure,` or `Based on the documents,`."""
    match = _INTERJECTION.match(text)
    if match is None or not match.end() or declines(text):
        return text
    rest = text[match.end() :]
    return rest[0].upper() + rest[1:]


def is_checkable(text: str) -> bool:
    """Return whether a sentence makes a statement."""
    if not any(map(str.isalnum, text)):
        return False
    if text.endswith((":", "\uff1a")):
        return _says_a_number(text) and is_checkworthy(text)
    if _QUESTION.search(text) or _QUOTED_QUESTION.match(text):
        return _is_statement_with_question_mark(text)
    return not declines(text)


def only_asks(text: str) -> bool:
    """Return whether a sentence only asks the reader, unlike "Did you know …?"."""
    if _QUESTION.search(text) and _ASKS_BACK.match(text) and not _TAG.search(text):
        return True
    opens = _BEFORE_QUESTION.match(text)
    text = text[opens.end() :] if opens else text
    asks = bool(_QUESTION.search(text)) and bool(_ASKS.match(text)) and not _TELLS.match(text)
    addressed = bool(_ADDRESSED.search(text)) and not any(map(str.isdigit, text))
    return asks and addressed and not _is_statement_with_question_mark(text)


def is_statement_as_heading(text: str) -> bool:
    """Return whether a heading makes a statement, such as "Revenue: $2.4B"."""
    if _ENDS_SENTENCE.search(text) or _GIVES_NUMBER.search(text):
        return True
    return len(text.split()) >= _FEWEST_WORDS and bool(_VERB.search(text)) and not _ASKS.match(text)


def declines(text: str) -> bool:
    """Return whether a sentence only speaks to the reader.

    It is small talk, an offer, a request, a refusal, or says who speaks.
    """
    if len(text) > _LONGEST or text.endswith((":", "\uff1a")):
        return False
    return refuses(text) or not is_checkworthy(text)


def _says_a_number(text: str) -> bool:
    """Return whether a lead-in contains a statement: a verb and a number."""
    return any(map(str.isdigit, text)) and bool(_VERB.search(text))


def _is_statement_with_question_mark(text: str) -> bool:
    """Return whether a question is a statement: "It was $9, right?", "It was $9?"."""
    if _TAG.search(text):
        return True
    opens = _ASKS.match(text) or any(_ASKS.match(part.strip()) for part in text.split(","))
    return _says_a_number(text) and not opens


def may_be_skipped(text: str) -> bool:
    """Return whether an extractor may skip a sentence: no statement, or an opinion only."""
    if not is_checkable(without_interjection(text)):
        return True
    words = _WORD.findall(text)
    about = words[:1] + [word for word in words if word[:1].isupper()]
    said = content_words(text) - {fold(word) for word in about}
    return bool(said) and said <= _OPINIONS


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
    rf"i(?:['\u2019]m| am| was){_NOT} (?:sure|certain|able to)",
    rf"(?:{_I_AM} afraid )?(?:that|this|it)(?:['\u2019]s| is)(?: \w+)? "
    r"(?:outside|beyond)(?: of)? (?:what i|my (?:scope|knowledge|expertise|role|abilities))\b",
    r"(?:that|this)(?:['\u2019]s| is)(?: not)? something i can(?:not|['\u2019]t)?\b",
    rf"i (?:only have access to|(?:have no|lack) (?:\w+ ){{0,2}}{_KNOWLEDGE})\b",
    rf"nothing in {_THE}{DOCUMENTS} {_TELL}s?\b",
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

_CLAUSE = re.compile(
    r"\d|\b(?:that|because|since|who|which|is|are|was|were|has|had|have|did|does|will|must)\b"
    r"|(?:,|\band) (?:\S+ ){1,4}?\w{2,}ed\b",
    re.IGNORECASE,
)

_LISTED = re.compile(r"(?:and|or|nor|as well as)\b", re.IGNORECASE)

_STATES = re.compile(
    rf"\b{_FINITE}\b|\d|(?:and|or) (?:it|he|she|they|there|we|you|this|that)\b", re.IGNORECASE
)

_HARMLESS = re.compile(
    rf"(?:{_SORRY}|please|too|either|at (?:this|the) (?:time|moment)|at all)\W*$"
    r"|please (?:provide|share|give|try|check|rephrase|clarify)\b"
    r"|(?:(?:and|but) )?i(?:'ll| can| will| would) (?:be (?:happy|glad) to )?"
    r"(?:help|look|assist|search|try|do my best)\b"
    rf"|(?:(?:and|or) )?{_WHETHER}\b|(?:such as|including)\b"
    r"|(?:wie|was|wer|wann|wo|ob|welche\w*|warum|dass|que|qui|quel\w*|o\u00f9|quand|comment|si"
    r"|qu\u00e9|cu\u00e1l|qui\u00e9n|cu\u00e1ndo|d\u00f3nde|c\u00f3mo|che|quando|quanto)\b",
    re.IGNORECASE,
)


def refuses(text: str) -> bool:
    """Return whether a sentence says that there is no answer, and nothing else."""
    match = _REFUSAL.match(text) if len(text) <= _LONGEST else None
    return match is not None and not any(_added(text[match.end() :]))


def _added(rest: str) -> Iterator[str]:
    """Yield parts after a refusal that may be statements."""
    first, *parts = (part.strip() for part in _PART.split(_INSIDE_A_NUMBER.sub("", rest)))
    parts = [part for part in parts if any(map(str.isalnum, part))]
    last = parts[-1] if parts else ""
    # "the area, size or climate", unlike "I cannot say, Paris or Rome"
    ends_list = bool(first) and last[:1].islower() and " or " in last
    is_list = ((len(parts) > 1 and bool(_LISTED.match(last))) or ends_list) and not _CLAUSE.search(
        f", {last}"
    )
    for part in parts:
        in_list = is_list and not _STATES.search(part)
        if not (in_list or _HARMLESS.match(part) or _REFUSAL.match(part)):
            yield part
