"""How a chat model's verdicts are read: a reply in the grammar below counts, and nothing else does.

A reply is one JSON object, as text or as the arguments of one call of the tool `VerdictLines`
(its schema and the prompts are in `llm/prompts.py`):

    {"tag": TAG, "lines": [LINE, ...]}

or plain text with `TAG LINE` on lines of their own. `TAG` is the one that the call shows last, so
an echo of the prompt or of another call does not count. What a line says:

    batched:      C1 [4] [5] supported
                  C2 [9] contradicted | VALUE | REASON
                  C3 unverifiable | REASON
    single pass:  the same with S for C; S4 skip; S4 (STATEMENT): [2] supported
    claim alone:  [4] supported     (when one claim is asked about, its number may be missing)

The label stands alone in its place. The numbers are those of evidence sentences that were shown,
from 1 on; they may stand without brackets, or after the label in brackets. `supported` and
`contradicted` have at least one, and `supported` has nothing after it. List markers, emphasis and
code fences around a line do not matter.

Fail closed: a claim has no verdict if it gets two different ones, or a line that says something
else or is cut off. The whole reply counts for nothing if it has a second object, a second call,
another tag, an entry that is not text, reasoning that does not end, or shifted claim numbers. So it
does if the text around its lines has any word other than a few polite ones, in whatever language:
that text may take a verdict back. No form can show that a verdict is on the wrong claim; a second,
independent verifier can (`CascadeVerifier`).

Every step looks at each character a bounded number of times, however long a reply is.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeAlias

from langchain_groundedness.llm.prompts import VerdictLines
from langchain_groundedness.llm.replies import (
    cut_at_limit,
    message_of,
    nested_too_deep,
    reply_fault,
    reply_text,
    tool_calls,
)

__all__ = ["Label", "ReplyReader", "ReplyVerdicts", "StatementLine", "VerdictLine", "may_retract"]

Label: TypeAlias = Literal["supported", "contradicted", "unverifiable"]


class VerdictLine(NamedTuple):
    """One line of a reply, read but not yet believed."""

    claim: int
    """Number of the claim, as it was shown."""
    label: Label
    sentences: tuple[int, ...] = ()
    """Numbers of evidence sentences, as the model named them; all of them were shown."""
    correction: str | None = None
    reason: str = ""


class StatementLine(NamedTuple):
    """What a line says about a part of a sentence."""

    sentence: int
    text: str
    verdict: VerdictLine | None
    """`None` if the line says nothing in the grammar."""


class ReplyVerdicts(NamedTuple):
    """What the lines of a reply say."""

    decided: Mapping[int, VerdictLine]
    """By number of the claim or sentence."""
    undecided: Mapping[int, str]
    """Why a claim that has a line has no verdict, in words that follow "its reply"."""
    statements: tuple[StatementLine, ...] = ()
    skipped: frozenset[int] = frozenset()
    unknown_numbers: frozenset[int] = frozenset()
    """Numbers with a line that belong to no claim."""


class ReplyReader(NamedTuple):
    """Reads the replies to one call."""

    tag: str
    """What the verdicts must repeat."""
    claims: int
    """How many claims, or sentences of the answer, the call shows."""
    sentences: int
    """How many sentences of evidence it shows."""
    has_statements: bool = False
    """Whether lines may be about a statement, or skip a sentence: the single pass."""

    def __call__(self, raw: Any) -> tuple[ReplyVerdicts | None, str | None]:
        """Return what a reply says, or what is wrong with all of it, in a clause about "it"."""
        if not reply_text(raw) and (why := reply_fault(raw)):
            return None, why
        try:
            lines, before, after = self._parts(raw)
        except _NoReplyError as exc:
            return None, reply_fault(raw) or f"it {exc}"
        verdicts, others = self._verdicts(lines)
        why = self._fault(verdicts, before, (*after, *others))
        return (verdicts, None) if why is None else (None, reply_fault(raw) or f"it {why}")

    def _fault(
        self, verdicts: ReplyVerdicts, before: Iterable[str], after: Iterable[str]
    ) -> str | None:
        """Return why verdicts count for nothing, in words that follow "it"."""
        if not any(verdicts):
            return "has no verdict"
        announced = all(self._says_nothing(each, _announces) for each in before)
        if not (announced and all(self._says_nothing(each, _offers) for each in after)):
            return "has text around its lines that may take them back"
        if self._counts_otherwise(verdicts):
            return "numbers the claims differently"
        decided, undecided, *more = verdicts
        return None if decided or any(more) else next(iter(undecided.values()))

    def _says_nothing(self, remark: str, is_polite: Callable[[str], bool]) -> bool:
        """Return whether a line beside the verdicts leaves them as they are."""
        text = remark.lower().replace("\u2019", "'")
        if re.fullmatch(rf"(?:tag\W{{0,3}})?{self.tag}", text, re.IGNORECASE):
            return True
        sentences = (part.strip(_TRIMMED) for part in re.split("[.!]", text))
        return all(map(is_polite, filter(None, sentences)))

    def _counts_otherwise(self, verdicts: ReplyVerdicts) -> bool:
        """Return whether verdicts may be meant for the claim before or after."""
        if not (verdicts.decided or verdicts.statements):
            return False
        named = {*verdicts.decided, *verdicts.undecided, *verdicts.skipped}
        named |= {statement.sentence for statement in verdicts.statements}
        unknown = verdicts.unknown_numbers
        return 0 in unknown or bool(unknown and len(named) < self.claims)

    def _parts(self, raw: Any) -> tuple[list[str], list[str], list[str]]:
        """Return the lines of a reply, and the text before and after the first of them."""
        text = reply_text(raw)
        if calls := list(tool_calls(message_of(raw))):
            return self._of_call(calls, text if str(message_of(raw).text).strip() else "")
        if not (begins := _OBJECT.search(text)):
            return self._of_text(text, is_cut=cut_at_limit(raw))
        lines, end = self._of_object(text, begins.start())
        return lines, _around(text[: begins.start()]), _around(text[end:])

    def _of_call(self, calls: list[Any], beside: str) -> tuple[list[str], list[str], list[str]]:
        if len(calls) > 1:
            msg = "has more than one tool call"
            raise _NoReplyError(msg)
        [(name, arguments)] = calls
        if name != VerdictLines.__name__:
            msg = "calls a tool that does not exist"
            raise _NoReplyError(msg)
        begins = _OBJECT.match(arguments)
        lines, end = self._of_object(arguments, 0 if begins else len(arguments))
        return lines, _around(beside), _around(arguments[end:])

    def _of_object(self, text: str, start: int) -> tuple[list[str], int]:
        if nested_too_deep(text):
            raise _NoReplyError(_NOT_IN_FORM)
        try:
            found, end = _STRICT.raw_decode(text, start)
        except (ValueError, RecursionError):  # thousands of digits, brackets behind a lone quote
            return self._of_cut_off_object(text, start), len(text)
        if not isinstance(found, dict) or not found.keys() <= {"tag", "lines"}:
            raise _NoReplyError(_NOT_IN_FORM)
        lines = found.get("lines")
        if isinstance(lines, str):
            lines = [lines]
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            msg = "has lines that are not text"
            raise _NoReplyError(msg)
        return self._untagged(lines, tag=found.get("tag")), end

    def _of_cut_off_object(self, text: str, start: int) -> list[str]:
        """Read the entries that are complete of an object that was cut off."""
        begins = _HALF.match(text, start)
        if begins is None:
            raise _NoReplyError(_NOT_IN_FORM)
        lines, place = [], begins.end()
        while entry := _ENTRY.match(text, place):
            try:
                lines.append(json.loads(entry[1]))
            except ValueError as exc:
                raise _NoReplyError(_NOT_IN_FORM) from exc
            place = entry.end()
        rest = text[place:].strip()
        if not rest.startswith('"') and rest not in {"", "]"}:
            raise _NoReplyError(_NOT_IN_FORM)
        last = rest[1:] if rest.startswith('"') else ""
        known = self._rest(last)
        return [*self._untagged(lines, tag=begins[1]), *_begun(last if known is None else known)]

    def _untagged(self, lines: Iterable[str], *, tag: object) -> list[str]:
        """Remove the tag from lines that have it; those of a tagged object need not."""
        each = [part for line in lines for part in line.splitlines() if part.strip()]
        rests = [self._rest(line) for line in each]
        if None in rests if tag is None else tag != self.tag:
            msg = "does not repeat the tag that was given"
            raise _NoReplyError(msg)
        found = (line if rest is None else rest for line, rest in zip(each, rests, strict=True))
        return [part for line in found for part in self._unmerged(line)]

    def _of_text(self, text: str, *, is_cut: bool) -> tuple[list[str], list[str], list[str]]:
        lines: list[str] = []
        before: list[str] = []
        after: list[str] = []
        whole, _, last = text.rpartition("\n") if is_cut else (text, "", "")
        for line in filter(str.strip, whole.splitlines()):
            rest = self._rest(line)
            if rest is not None:
                lines += self._unmerged(rest)
            else:
                (after if lines else before).append(line)
        if not lines:
            msg = "has no line that begins with the tag that was given"
            raise _NoReplyError(msg)
        rest = self._rest(last)
        if rest is not None:
            lines += _begun(rest)
        elif not self.tag.startswith(last.strip(_AROUND)):
            after.append(last)
        return lines, _around(*before), _around(*after)

    def _unmerged(self, line: str) -> list[str]:
        """Return a line; one with the tag inside it is several, and none of them is whole."""
        parts = line.split(self.tag)
        return parts if len(parts) == 1 else [f"{part.lstrip(_BETWEEN)}{_CUT}" for part in parts]

    def _rest(self, line: str) -> str | None:
        """Return what a line says after its tag; `None` if it does not begin with the tag."""
        bare = _LISTED.sub("", line.lstrip(_AROUND), count=1).lstrip(_AROUND)
        if not bare.startswith(self.tag):
            return None
        rest = bare[len(self.tag) :]
        return None if rest[:1].isalnum() else rest.lstrip(_BETWEEN)

    def _verdicts(self, lines: list[str]) -> tuple[ReplyVerdicts, list[str]]:
        """Read lines; those that are about no claim are returned."""
        found: dict[int, set[Label | str]] = {}
        decided: dict[int, VerdictLine] = {}
        undecided: dict[int, str] = {}
        statements: list[StatementLine] = []
        unknown_numbers: set[int] = set()
        others: list[str] = []
        for number, rest in map(self._numbered, lines):
            if number is None:
                others.append(rest)
            elif not 1 <= number <= self.claims:
                unknown_numbers.add(number)
            elif isinstance(said := self._said(number, rest), StatementLine):
                statements.append(said)
            elif isinstance(said, VerdictLine):
                decided.setdefault(number, said)
                found.setdefault(number, set()).add(said.label)
            elif said == _SKIPPED:
                found.setdefault(number, set()).add(said)
            else:
                undecided[number] = said
        for number, labels in found.items():
            if len(labels) > 1:
                undecided.setdefault(number, "has two different verdicts for the claim")
        return ReplyVerdicts(
            {number: line for number, line in decided.items() if number not in undecided},
            undecided,
            tuple(statements),
            frozenset(n for n, labels in found.items() if labels == {_SKIPPED}) - undecided.keys(),
            frozenset(unknown_numbers),
        ), others

    def _numbered(self, line: str) -> tuple[int | None, str]:
        """Return the number of the claim that a line is about, and what it says."""
        bare = line.lstrip(_AROUND)
        if numbered := _NUMBERED.match(bare):
            return int(numbered[1]), bare[numbered.end() :].lstrip(_BETWEEN)
        if self.claims == 1 and not self.has_statements and _ALONE.match(bare):
            return 1, bare
        return None, line

    def _said(self, number: int, text: str) -> VerdictLine | StatementLine | str:
        """Read what a line says: a verdict, `(STATEMENT): VERDICT`, or `skip`; or what is wrong."""
        if self.has_statements and _SKIP.fullmatch(text):
            return _SKIPPED
        if not self.has_statements or text[:1] not in _CLOSING:
            return self._verdict(number, text)
        end = _end_of_statement(text)
        if end is None or _CUT in text:
            return _NOT_IN_FORM
        verdict = self._verdict(number, text[end + 1 :].lstrip(_BETWEEN))
        return StatementLine(number, text[1:end], None if isinstance(verdict, str) else verdict)

    def _verdict(self, number: int, text: str) -> VerdictLine | str:
        """Read `[4] [5] LABEL | NOTES`, or say what is wrong with it."""
        head, *notes = (part.strip() for part in text.split("|"))
        read = _head(head) if _CUT not in text else None
        if read is None:
            return "has an incomplete line" if _CUT in text else _NOT_IN_FORM
        label, numbers, reason = read
        notes = [reason, *notes] if reason else notes
        if numbers is None or not all(1 <= place <= self.sentences for place in numbers):
            return "names evidence that was not shown"
        if label != "unverifiable" and not numbers:
            return "has a verdict that names no evidence"
        if label == "supported" and any(note.strip(_NOTHING) for note in notes):
            return "has text after the label supported"
        if any(_names_another(note, label) for note in notes):
            return "has two labels in one line"
        return VerdictLine(number, label, numbers, *_notes(label, notes))


_SKIPPED = "skip"

_NOT_IN_FORM = "is not in the form that was asked for"

_CUT = "\0"
"""Marks the end of an incomplete line."""


class _NoReplyError(Exception):
    """Says why a reply counts for nothing, in words that follow "it"."""


_OBJECT = re.compile(r"\{\s*(?=[\"'}])")

_HALF = re.compile(r'\{\s*"tag"\s*:\s*"([^"\\]*)"\s*,\s*"lines"\s*:\s*\[\s*')

_ENTRY = re.compile(r'\s*("(?:[^"\\]|\\.)*+")\s*(?:,|(?=\])|\Z)')

_AROUND = " \t*_`'\"\u2022,-"

_BETWEEN = " \t*_`:.,)"

_LISTED = re.compile(r"\A[0-9]{1,4}[.)]\s+")

_NUMBERED = re.compile(
    r"(?:claim\s{0,3}|sentence\s{0,3}|[cs])?([0-9]{1,4})(?:[*_`:.)]+(?=[\s\[(\"\u201c]|\Z)|(?=[\s\[(\"\u201c]|\Z))",
    re.IGNORECASE | re.ASCII,
)

_ALONE = re.compile(r"\[|(?:supported|contradicted|unverifiable)\b", re.IGNORECASE | re.ASCII)

_SKIP = re.compile(r"skip[\s.*_`]*", re.IGNORECASE | re.ASCII)

_CLOSING = {"(": ")", '"': '"', "\u201c": "\u201d"}

_CLOSED = {sign: re.compile(rf"{re.escape(sign)}(?=\s{{0,3}}[:.])") for sign in _CLOSING.values()}

_NOTHING = " \t-.\u2013\u2014*_`"

_LABELS: dict[str, Label] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "refuted": "contradicted",
    "unverifiable": "unverifiable",
    "unsupported": "unverifiable",
    "unknown": "unverifiable",
}

_MARK = r"[\s*_`'\".,:;&()\u2013\u2014\u2192\u2705\u2713\u2714-]"

_HEAD = re.compile(
    r"""(?P<numbers>(?:
        [\s\[\]()*_`'",;&:\u2014\u2192\u2705\u2713\u2714] | => | [-\u2013](?![0-9])
        | (?<=[0-9])[-\u2013](?=[0-9]) | [0-9]++
        | \b(?:sentences?|evidence|verdict|and)\b)*+)"""
    rf"(?P<label>{'|'.join(_LABELS)})(?![^\W_])",
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)

_LIST = r"[\s0-9,;&\u2013-]"

_AFTER = re.compile(
    rf"{_MARK}*+(?:"
    rf"(?:(?:by|in)\s++)?(?:sentences?|evidence)\b(?P<cited>(?:{_LIST}|[\[\]]|and\b)*+)"
    rf"|(?P<bracketed>(?:\[{_LIST}++\](?:[\s,;&]|and\b)*+)++)"
    rf")?+{_MARK}*+",
    re.IGNORECASE | re.ASCII,
)

_NOTE = re.compile(r"[\s*_`]*+[-:;,.\u2013\u2014]\s*+(?=\S)", re.ASCII)

_NUMBER = re.compile(r"([0-9]++)(?:[-\u2013]([0-9]++))?+", re.ASCII)

_BRACKETED = re.compile(r"\[[^\[\]]*\]")

_LABEL_IN_NOTE = re.compile(
    r"(?<!not\s)(?<!not\sbe\s)(?<![^\W_])(supported|contradicted|refuted|unverifiable)(?![^\W_])",
    re.IGNORECASE | re.ASCII,
)

_NO_NOTE = frozenset({"", "-", "\u2013", "none", "n/a", "unknown"})

_LONGEST_NUMBER = 6

_LONGEST_RANGE = 20

_LONGEST_VALUE = 6


def _only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "a key comes twice"
        raise ValueError(msg)
    return found


_STRICT = json.JSONDecoder(object_pairs_hook=_only_once)


def _around(*texts: str) -> list[str]:
    """Return the lines around verdicts, without code fences."""
    lines = (line.strip(" \t`*_#>-") for text in texts for line in text.splitlines())
    return [line for line in lines if line and line.lower() not in {"json", "text", "plaintext"}]


_ANNOUNCED = frozenset(
    """
    a absolutely according after all an analysis analyze analyzed analyzing and answer answers are
    as assess assessed assessing assessment assessments at based be below by can carefully certainly
    check checked checking claim claims course definitely document documents done each evaluate
    evaluated evaluating evaluation evaluations every evidence fact final findings following follows
    for from given go got great have hello here hi i in information is it its json judge judged
    judgement judgements judging judgment judgments let line lines list ll m me my object of ok okay
    on one order our output per please provided question ready reply requested response result
    results review reviewed reviewing s see sentence sentences statement statements sure text that
    the their them these thing this through to understood using ve verdict verdicts verification we
    will with you your
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
"""The only words that may come before verdicts: no arrangement of them takes one back."""

_OFFERED = frozenset(
    """
    a about all am any anything are ask assessment assist assistance can clarification d details
    done else end feel for free further glad happy have help helpful helps hope i if information is
    know let like m me more need of or out please questions reach reply s thank thanks that there
    these this to verdicts with would you your
    """.split()  # noqa: SIM905
)
"""The only words that may come after verdicts, in a sentence that begins like an offer."""

_OFFER = re.compile(
    r"(?:please )?(?:let me know|feel free|if you|i hope|hope|thanks?|that(?: i|')s all|done|end of"
    r"|is there anything else|(?:i(?: a|')m )?(?:happy|glad) to)\b"
)

_BASED = re.compile(
    r"(?:all|these|the|my)(?: verdicts)? are based (?:only |solely )?on the (?:provided |given )?"
    r"evidence(?: provided)?"
)

_TRIMMED = " \t*_`\"'\u2013\u2014\U0001f60a\U0001f642-"

_WORDS = re.compile(r"[\s,;()*_`\"'\u2013\u2014-]+")

_IN_THE_FORM = re.compile(
    r"\b(?:[2-9]|[1-9][0-9]|two|three|four|five|six|seven|eight|nine|ten)\s+"
    r"(?=(?:claims|sentences|statements|verdicts|lines)\b)"
    r"|\bin the (?:requested|required|specified) form(?:at)?\b"
    r"|\b(?:check|assess|evaluat|judg|review|compar)[a-z]*+(?: (?:each|every|the|all|your|these|of"
    r"|claims?|statements?|sentences?|answer))*+ (?:against|with) the (?:given |provided )?"
    r"(?:evidence|documents?)\b"
)
"""Phrases with words that are only polite there: "I check the 4 claims against the evidence"."""


def _announces(sentence: str) -> bool:
    """Return whether a sentence says no more than that verdicts follow."""
    said = _IN_THE_FORM.sub("", sentence).replace(":", " ").strip()
    return _offers(sentence) or _ANNOUNCED.issuperset(filter(None, _WORDS.split(said)))


def _offers(sentence: str) -> bool:
    """Return whether a sentence offers help, or ends the reply."""
    sentence = sentence.removesuffix("?")
    words = filter(None, _WORDS.split(sentence))
    is_offer = _OFFER.match(sentence) and _OFFERED.issuperset(words)
    return bool(is_offer or _BASED.fullmatch(sentence))


_BEGUN = re.compile(r"[\W_]*+(?:claim|sentence|[cs])?+[\W_]*+[0-9]*+", re.IGNORECASE | re.ASCII)


def _begun(line: str) -> list[str]:
    """Return a line that was cut off, unless nothing but its beginning is there."""
    return [] if _BEGUN.fullmatch(line) else [f"{line}{_CUT}"]


_RETRACTING = re.compile(
    r"""n['\u2019]t\b|\b(?:
    no|nor|not|none|never|nothing|neither|cannot|without|yes
    |but|however|though|although|instead|otherwise|rather|actually|except|unless|yet
    |wait|oops|sorry|apolog\w*|draft\w*|scratch|disregard|ignore|forget|hold\s+on|thought
    |true|false|wrong\w*|right|correct\w*|incorrect\w*|mistak\w*|error\w*|invalid|doubt\w*
    |revis\w*|re-?consider\w*|re-?think\w*|re-?read\w*|retract\w*|withdr\w*|chang\w*|updat\w*
    |amend\w*|fix\w*|opposite|reverse\w*|swap\w*|second|hallucinat\w*|fail\w*|lack\w*
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


def may_retract(remark: str) -> bool:
    """Return whether a text may deny something or take it back."""
    return _RETRACTING.search(remark) is not None


def _end_of_statement(text: str) -> int | None:
    """Find what closes the first sign: the sign that balances it, or else the only one."""
    opening, closing = text[0], _CLOSING[text[0]]
    ends = [match.start() for match in _CLOSED[closing].finditer(text.partition("|")[0], 1)]
    if opening == closing:
        return ends[0] if len(ends) == 1 else None
    depths = accumulate((sign == opening) - (sign == closing) for sign in text)
    balanced = next((place for place, depth in enumerate(depths) if depth == 0), None)
    if balanced in ends:
        return balanced
    return ends[0] if len(ends) == 1 else None


def _head(text: str) -> tuple[Label, tuple[int, ...] | None, str] | None:
    """Read the label, the numbers around it, and the reason that may follow `unverifiable`."""
    # The numbers are None if any of them is not the number of a sentence.
    found = _HEAD.match(text)
    if found is None:
        return None
    if "[" in found["numbers"] and _NUMBER.search(_BRACKETED.sub("", found["numbers"])):
        return None  # 4, or 4 of 5?
    label, rest = _LABELS[found["label"].lower()], text[found.end() :]
    more = _AFTER.fullmatch(rest)
    if more is not None:
        return label, _numbers(found["numbers"], more["cited"] or more["bracketed"] or ""), ""
    note = _NOTE.match(rest)
    if label != "unverifiable" or note is None:
        return None
    return label, _numbers(found["numbers"]), rest[note.end() :]


def _numbers(*texts: str) -> tuple[int, ...] | None:
    numbers: list[int] = []
    for match in _NUMBER.finditer(" ".join(texts)):
        first, last = match[1], match[2] or match[1]
        if max(len(first), len(last)) > _LONGEST_NUMBER:
            return None
        if not 0 <= int(last) - int(first) <= _LONGEST_RANGE:
            return None
        numbers.extend(range(int(first), int(last) + 1))
    return tuple(dict.fromkeys(numbers))


def _names_another(note: str, label: Label) -> bool:
    """Return whether a note has a label other than the one before it."""
    named = {_LABELS[each.lower()] for each in _LABEL_IN_NOTE.findall(note)}
    return bool(named - {label})


def _notes(label: Label, notes: list[str]) -> tuple[str | None, str]:
    said = [note for note in notes if note.lower() not in _NO_NOTE]
    if label != "contradicted" or not said:
        return None, " ".join(said)
    has_value = notes[0] == said[0] if len(notes) > 1 else len(said[0].split()) <= _LONGEST_VALUE
    return (said[0], " ".join(said[1:])) if has_value else (None, " ".join(said))
