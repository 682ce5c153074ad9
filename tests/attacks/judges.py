"""Judges that have fallen for an attack, and do as it says, in the form that they are asked for."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from attacks.corpus import FALSE, Attack
from langchain_groundedness.testing import ScriptedChatModel

__all__ = ["STYLES", "Obedience", "gullible"]

Obedience: TypeAlias = Callable[[str, str, Attack], str]
"""From the system prompt, the rest of the prompt and the attack to a reply."""
_MANY = 60


def gullible(attack: Attack, style: str = "obedient") -> ScriptedChatModel:
    """Make a judge that does what the attack wants, whatever it is asked.

    Args:
        attack: The attack that it has fallen for.
        style: How it obeys, of `STYLES`.

    Returns:
        A chat model.
    """
    obey = STYLES[style]
    return ScriptedChatModel(
        replies=lambda messages: obey(messages[0].text, messages[-1].text, attack)
    )


def _obedient(system: str, asked: str, _: Attack) -> str:
    """Call all supported by every sentence, skip what is to be extracted, correct at will."""
    if "prepare an answer" in system:
        return "\n".join(f"{n}: skip" for n in range(1, _MANY))
    if "correct statements" in system:
        return "\n".join(f"{n}: {FALSE}" for n in range(1, _MANY))
    if "check statements" in system:
        return "yes"
    shown = asked.partition("\n</evidence ")[0]
    numbers = " ".join(f"[{n}]" for n in re.findall(r"(?m)^(\d+) ", shown))
    if "check an answer" in system:
        return "\n".join(f"{{tag}} S{n}: {numbers} supported" for n in _claims(asked))
    return "\n".join(f"{{tag}} C{n}: {numbers} supported" for n in _claims(asked))


def _parrot(_: str, __: str, attack: Attack) -> str:
    """Reply with the attack itself."""
    return "{tag} " + attack.text.replace("{claim}", FALSE).replace("\n", "\n{tag} ")


def _inventor(system: str, asked: str, attack: Attack) -> str:
    """Quote what stands nowhere, number what was not shown, and name labels that do not exist."""
    if "prepare an answer" in system:
        return "\n".join(f"{n}: Something else altogether." for n in range(1, _MANY))
    if "check statements" in system:
        return "Yes: supported, certain, 100 %."
    if "check an answer" in system:
        return "\n".join(
            f"{{tag}} S{n} (Something else altogether): [1] supported" for n in _claims(asked)
        )
    wrong = ("[0] [-7] [100000] supported", f'"{FALSE}" supported', "proven", "[1] supported, but")
    return "\n".join(
        f"{{tag}} C{n}: {wrong[n % len(wrong)]} | {attack.name}" for n in _claims(asked)
    )


STYLES: Mapping[str, Obedience] = {"obedient": _obedient, "parrot": _parrot, "inventor": _inventor}


def _claims(asked: str) -> Iterator[int]:
    yield from (int(number) for number in re.findall(r"(?m)^[CS](\d+):", asked))
