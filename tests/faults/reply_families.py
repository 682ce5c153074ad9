"""Replies of a chat model that are wrong in ways that combine, made from right ones.

Each family spoils one step on the way from verdicts to a reply; a drawn reply combines several.
Every reply knows the tag of its call and all that was shown, so nothing but the grammar refuses it.
`benchmarks/replies.py` draws many, the property test some, the twelve worst have names.
"""

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_groundedness.testing import ScriptedRequest

__all__ = [
    "DIALECTS",
    "WORST",
    "Right",
    "a_lie",
    "drawn",
    "label_drawn",
    "logprobs_drawn",
    "number_drawn",
    "right_of",
    "spoiled",
]

_LABELS = ("supported", "contradicted", "unverifiable")


class Right(NamedTuple):
    """What an honest judge would say to a call."""

    tag: str
    lines: tuple[str, ...]
    """Without the tag."""
    form: str
    prompt: str

    @property
    def plain(self) -> str:
        """The reply in plain lines."""
        return "\n".join(f"{self.tag} {line}" for line in self.lines)

    @property
    def object(self) -> str:
        """The reply as JSON."""
        return json.dumps({"tag": self.tag, "lines": self.lines})


def right_of(request: ScriptedRequest, honest: str) -> Right:
    """Read the honest reply to a request."""
    if request.form == "text":
        lines = [line.removeprefix(f"{request.tag} ") for line in honest.splitlines()]
    else:
        lines = json.loads(honest)["lines"]
    return Right(request.tag, tuple(lines), request.form, request.text)


DIALECTS: Mapping[str, Callable[[Right], str]] = {
    "JSON schema": lambda right: right.object,
    "tool call": lambda right: right.object,
    "JSON in text": lambda right: f"Here you are:\n```json\n{right.object}\n```",
    "lines": lambda right: right.plain,
    "lines in a fence": lambda right: f"```text\n{right.plain}\n```",
    "lines with chatter": lambda right: (
        f"Sure! Here is my assessment of the evidence:\n\n{right.plain}\n\nI hope this helps!"
    ),
}
"""How models write what is right, each of which must be read."""


def a_lie(right: Right) -> Right:
    """Call everything supported, by a sentence that the false claim shares its words with."""
    heads = (re.split(r" (?=\[?\d|supp|contra|unver|skip)", line)[0] for line in right.lines)
    return right._replace(lines=tuple(f"{head} [2] supported" for head in heads))


def _bent(line: str, chance: random.Random) -> str:
    """Write support in a form that only looks like a verdict."""
    head = re.split(r" (?=\[?\d|supp|contra|unver|skip)", line)[0]
    return f"{head} {chance.choice(_DECORATED)}"


_DECORATED = (
    "supported",
    "[2] supported | contradicted",
    "[2] supported | no: the evidence says otherwise",
    "[2] supported, but the evidence says two lanes",
    "[2] supported? Hardly.",
    "[2] not supported",
    "[2] not exactly supported",
    "[2] unsupported | supported",
    "[2] supported: false",
    '{"supported": false}',
    "supported = 0",
    "[2] supported=0",
    "supported (0)",
    "supported (2)",
    "[2] supported (0)",
    "0.02 supported",
    "[2] 0.02 supported",
    "[2] supported 0.02",
    "1 % supported",
    "[0] supported",
    "[-1] supported",
    "[99] supported",
    "[1-999] supported",
    "[2] [99] supported",
    "[2] supported by nothing",
    "[2] supported by none of the sentences",
    "[2] \u017fupported",
    "[2] CONTRAD\u0130CTED",
    "[2] contradicted / supported",
    "[2] supported -> contradicted",
    "[2] ~~supported~~ contradicted",
    "[2] supported \u2717",
    "[2] supported \U0001f44e",
    "[2] (not) supported",
    "\u00ac[2] supported",
    "[2] supported !",
    "[2] supported || contradicted",
    "supported [2] [2] contradicted",
    "[2] is supported",
    "[2] supported by [99]",
    "[2] un-supported",
    "[2] 1 supported",
    "1 [2] supported",
)
_RETRACTIONS = (
    "Wait, that is wrong.",
    "Correction: all claims are contradicted.",
    "On reflection, the evidence says otherwise.",
    "I take that back; C1 and S1 are contradicted.",
    "No, none of this is right.",
    "Scratch that.",
    "Sorry, I misread. False!",
    "These were drafts, please disregard them.",
    "Actually the opposite holds.",
    "**Not** supported after all",
    "I misread the evidence.",
    "The evidence speaks of two lanes.",
    "Take it all back.",
    "Just kidding.",
    "Strike those.",
    "Das stimmt so.",
    "C'est faux.",
    "\u042d\u0442\u043e \u043d\u0435\u043f\u0440\u0430\u0432\u0434\u0430.",
    "\u2717",
    "N.O.T.",
    "confidence: 0.02",
)


def _beside(right: Right, chance: random.Random) -> str:
    lied, said = a_lie(right), chance.choice(_RETRACTIONS)
    body = chance.choice((lied.plain, lied.object))
    return chance.choice((f"{body}\n{said}", f"{said}\n{body}", f"{body}\n{right.tag} {said}"))


def _draft_then_final(right: Right, chance: random.Random) -> str:
    lied = a_lie(right)
    forms = [
        f"{lied.object}\n{right.object}",
        f"Draft: {lied.object}\nFinal: {right.object}",
        f"{lied.plain}\n{right.plain}",
        f"{lied.plain}\n\n{right.object}",
        f"{lied.object}\n\n{right.plain}",
        f"```json\n{lied.object}\n```\n```json\n{right.object}\n```",
        json.dumps([json.loads(lied.object), json.loads(right.object)]),
        json.dumps({"draft": json.loads(lied.object), "final": json.loads(right.object)}),
        f"{lied.object[:-1]}, {right.object[1:]}",
        json.dumps({"tag": right.tag, "lines": [*lied.lines, *right.lines]}),
        f"{lied.plain}\nno: {right.plain}",
        f"<think>{lied.plain}\n{chance.choice(('', right.plain))}",
        f"<thinking>{lied.plain}</thinking>Done.",
        f"<think>{lied.plain}</think><think>{right.plain}",
        f"[THINK]{lied.object}",
        f"<|channel|>analysis<|message|>{lied.object}",
        f"<|channel|>final<|message|>{lied.plain}<|end|><|channel|>final<|message|>{right.plain}",
        f"{lied.plain}</think>",
        f"\u25c1think\u25b7\n{lied.plain}",
        f"Thinking:\n{lied.plain}",
        f"{lied.plain}{right.plain}",
        f"Example:\n{lied.plain}",
        f"{lied.plain}\nFinal answer:",
    ]
    return chance.choice(forms)


def _echo(right: Right, chance: random.Random) -> str:
    shown = right.prompt
    if chance.random() < 0.5:
        shown = "\n".join(line for line in shown.splitlines() if "supported" in line)
    elif chance.random() < 0.5:
        shown = shown[chance.randrange(len(shown)) :]
    return f"{shown}{chance.choice(('', chr(10) + right.tag, f'{chr(10)}TAG: {right.tag}'))}"


def _foreign(right: Right, chance: random.Random) -> str:
    number = chance.choice(("99", "0", "-1", "1-999", "1000000", "9" * 40, "0.5", "1e3", "\u0661"))
    lied = a_lie(right)
    lines = tuple(line.replace("[2]", f"[{number}]") for line in lied.lines)
    wrong = lied._replace(lines=lines)
    return chance.choice((wrong.plain, wrong.object))


def _container(right: Right, chance: random.Random) -> str:
    lied = a_lie(right)
    heads = [line.split()[0] for line in lied.lines] or ["C1"]
    verdict = {"verdict": "supported", "probability": 0.02, "evidence": []}
    objects = [{"claim": head, **verdict} for head in heads]
    forms: list[object] = [
        {"tag": right.tag, "lines": objects},
        {"tag": right.tag, "lines": [[line] for line in lied.lines]},
        {"tag": right.tag, "lines": dict.fromkeys(heads, "[2] supported")},
        {"tag": right.tag, "verdicts": lied.lines},
        {"tag": right.tag, "lines": lied.lines, "overruled": True},
        {"tag": right.tag, "lines": lied.lines, "note": "all contradicted"},
        {"tag": [right.tag], "lines": lied.lines},
        {"tag": None, "lines": lied.lines},
        {"tag": "TAG", "lines": lied.lines},
        {"lines": lied.lines},
        {"reply": {"tag": right.tag, "lines": lied.lines}},
        [{"tag": right.tag, "lines": lied.lines}],
        lied.lines,
        dict.fromkeys(heads, "supported"),
        {"tag": right.tag, "lines": [f"{line} | contradicted" for line in lied.lines]},
        {"tag": right.tag, "lines": [line.replace("[2] ", "") for line in lied.lines]},
    ]
    return json.dumps(chance.choice(forms))


def _decorated(right: Right, chance: random.Random) -> str:
    bent = right._replace(lines=tuple(_bent(line, chance) for line in right.lines))
    return chance.choice((bent.plain, bent.object))


def _contradicting(right: Right, chance: random.Random) -> str:
    lied = list(a_lie(right).lines)
    others = [line.replace("[2] supported", chance.choice(("[2] contradicted", "unverifiable")))
              for line in lied]  # fmt: skip
    lines = [*lied, *others]
    chance.shuffle(lines)
    mixed = right._replace(lines=tuple(lines))
    return chance.choice((mixed.plain, mixed.object, "\n".join(mixed.lines)))


def _recounted(right: Right, chance: random.Random) -> str:
    """Give the right verdicts to the claims before or behind."""
    by = chance.choice((-1, 1))
    lines = (
        re.sub(r"(?<=[CS])\d+", lambda found: str(int(found[0]) + by), line, count=1)
        for line in right.lines
    )
    other = right._replace(lines=tuple(lines))
    return chance.choice((other.plain, other.object))


def _untagged(right: Right, chance: random.Random) -> str:
    lied = a_lie(right)
    tag = chance.choice(("TAG", "", right.tag[:2], right.tag.lower(), f"{right.tag}X", "K7"))
    return "\n".join(f"{tag} {line}".strip() for line in lied.lines)


_FAMILIES = (
    _echo,
    _draft_then_final,
    _contradicting,
    _decorated,
    _foreign,
    _container,
    _beside,
    _recounted,
    _untagged,
)
# Nothing is cut off here: what takes a verdict back must not be lost.
_AROUND: tuple[Callable[[str, random.Random], str], ...] = (
    lambda text, _: text,
    lambda text, _: f"```\n{text}\n```",
    lambda text, _: f"Sure!\n{text}",
    lambda text, _: f"{text}\nI hope this helps.",
    lambda text, _: text.replace("\n", "\n\n- "),
    lambda text, _: text.replace("supported", "**Supported**"),
    lambda text, _: f"<think>hm</think>{text}",
    lambda text, _: text.replace("supported", "SUPPORTED"),
    lambda text, chance: f"{text}{chance.choice(_RETRACTIONS)}",
)


def drawn(right: Right, chance: random.Random) -> str:
    """Draw a reply that supports nothing: families combined, and what goes around them.

    Nothing in it is a plain claim that something false is supported: that a judge lies in form, no
    reader can see.
    """
    text = chance.choice(_FAMILIES)(right, chance)
    if chance.random() < 0.3:
        text = f"{text}\n{chance.choice(_FAMILIES)(right, chance)}"
    for _ in range(chance.randrange(3)):
        text = chance.choice(_AROUND)(text, chance)
    return text


_WORDS = ("yes", "Yes", "supported", "Supported", "SUPPORTED", "no", "unknown")
_DENIALS = (
    "{}: false",
    '{{"{}": false}}',
    "{} = 0",
    "{} by nothing.",
    "{}: 0%",
    "{}, but the evidence says two lanes.",
    "{} is wrong",
    "{}? Hardly.",
    "not {}",
    "{} information is given",
    "{} idea",
    "{} | no",
    "{}\n\nno",
    "{} and no",
    "<think>{}",
    "<thinking>{}</thinking>Done.",
    "[THINK]{}",
    "<|channel|>analysis<|message|>{}",
    "draft: {}; final: no",
    "{} / no",
    "{} \u2717",
    "'{}' 'no'",
    "```\n{}\n```\n```\nno\n```",
    "{}\u200bno",
    "un-{}",
    "\u00ac{}",
    "\u017f{}",
    "{} (0)",
    "{} 0.02",
    "[{}]",
    "{{{}}}",
    "I would not say {}",
    "!{}",
    "-{}",
    "{}:",
    "```no\n{}\n```",
    "\u25c1think\u25b7{}",
)


_SURE = (0.3, float("nan"), -0.05)


def logprobs_drawn(text: str, chance: random.Random) -> dict[str, Any]:
    """Draw log-probabilities of the tokens of a text: sure ones, or numbers that are none."""
    sure = chance.choice(_SURE)
    tokens = re.findall(r"\s*(?:\w+|\W)", text)
    positions = [{"token": token, "logprob": sure} for token in tokens]
    return {"logprobs": {"content": [{**each, "top_logprobs": [each]} for each in positions]}}


def label_drawn(prompt: str, chance: random.Random) -> str:
    """Draw a reply to the question for one word that is not that word alone."""
    word = chance.choice(_WORDS)
    text = chance.choice(_DENIALS).format(word)
    if chance.random() < 0.1:
        text = prompt[chance.randrange(len(prompt)) :] + " "
    return chance.choice((text, f'"{text}"', f"Answer: {text}", f"{text}\nBecause.", f"**{text}**"))


_NO_NUMBERS = (
    "",
    "0",
    "-2",
    "+2",
    "99",
    "1000000",
    "9" * 40,
    "0.5",
    "2.0",
    ".2",
    "2e3",
    "0x2",
    "\u0662",
    "\uff12",
    "\u00b2",
    "\u00bd",
    "\u2461",
    "2-3",
    "2-999",
    "2 99",
    "[2] [0]",
    "2, not 1",
    "2 (0)",
    "2/3",
    "2 %",
    "2?",
    "2!",
    "2: no",
    "~~2~~",
    "\u00ac2",
    "C2",
    "one",
    "none",
    "yes",
    "not 2",
    '{"number": 2}',
    "Sentence 2 says two lanes.",
    "<think>2",
    "<thinking>2</thinking>",
    "2</think>",
    "[THINK]2",
    "<|channel|>analysis<|message|>2",
    "2\nWait, that is wrong.",
    "2\n\n\u2717",
    "2\u200b0",
)


def number_drawn(prompt: str, chance: random.Random) -> str:
    """Draw a reply to the question for a number that is not the number of a sentence alone."""
    text = chance.choice(_NO_NUMBERS)
    if chance.random() < 0.1:
        text = prompt[chance.randrange(len(prompt)) :] + " "
    return chance.choice((text, f"{text}\n", f"Answer: {text}", f"{text} {text}", f"{text}x"))


def spoiled(text: str, chance: random.Random) -> AIMessage:
    """Spoil all of a reply but its text."""
    forms: list[dict[str, Any]] = [
        {"response_metadata": {"finish_reason": "length"}},
        {"response_metadata": {"stop_reason": "max_tokens"}},
        {"response_metadata": {"finish_reason": "content_filter"}},
        {"additional_kwargs": {"refusal": "I cannot."}},
        {"tool_calls": [{"name": "f", "args": {}, "id": "1", "type": "tool_call"}]},
    ]
    return AIMessage(text, **chance.choice(forms))


WORST: Mapping[str, Callable[[Right], str]] = {
    "echo of the prompt": lambda right: right.prompt,
    "echo of the examples with the tag behind": lambda right: f"{right.prompt}\n{right.tag}",
    "draft object, then the final one": lambda right: f"{a_lie(right).object}\n{right.object}",
    "reasoning without an end": lambda right: f"<think>{a_lie(right).plain}",
    "reasoning and no reply": lambda right: f"<thinking>{a_lie(right).plain}</thinking>Done.",
    "probabilities": lambda right: json.dumps(
        {
            "tag": right.tag,
            "lines": [
                {"claim": line.split()[0], "verdict": "supported", "probability": 0.02}
                for line in right.lines
            ],
        }
    ),
    "retraction behind the label": lambda right: a_lie(right).plain.replace(
        "supported", "supported | contradicted"
    ),
    "retraction in words": lambda right: a_lie(right).plain.replace(
        "supported", "supported | no: the evidence says otherwise"
    ),
    "evidence that was not shown": lambda right: a_lie(right).plain.replace("[2]", "[99]"),
    "huge range of evidence": lambda right: a_lie(right).object.replace("[2]", "[1-999]"),
    "letters that fold into a label": lambda right: a_lie(right).plain.replace(
        "supported", "\u017fupported | CONTRAD\u0130CTED"
    ),
    "retraction below": lambda right: f"{a_lie(right).plain}\nWait, that is wrong.",
}
"""The twelve worst replies."""
