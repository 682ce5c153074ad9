"""Messages of an agent after the check: annotated, with other text, or without our annotations.

Pure: every function gives a new message with the id of the old one, so that LangGraph puts it in
the place of that.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.messages.content import Citation as NativeCitation
from langchain_core.messages.content import NonStandardAnnotation

from langchain_groundedness.types import Citation, ClaimVerdict, Edit, GroundednessResult

__all__ = ["annotated", "with_text", "without_annotations"]

_OURS = "groundedness"

MessageT = TypeVar("MessageT", bound=BaseMessage)


def annotated(message: AIMessage, result: GroundednessResult) -> AIMessage:
    """Add the verdicts to the text of a message, as native annotations.

    A supported claim gets one `Citation` per quote, with the span of the claim in the text and the
    quote as `cited_text`; a claim that was corrected gets one with the quote that it was corrected
    after. Every other claim gets a `non_standard_annotation` with its verdict.

    Args:
        message: The answer; its text is `result.answer`.
        result: The result of its check.

    Returns:
        The message with content blocks; the same message if there is nothing to add, or if its
        text is not what was checked.
    """
    blocks: list[dict[str, Any]] = [dict(block) for block in message.content_blocks]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    if text != result.answer or not result.claims:
        return message
    start = 0
    for block in blocks:
        if block["type"] != "text":
            continue
        end = start + len(block["text"])
        if new := list(_annotations(result, start, end)):
            kept = [a for a in block.get("annotations") or () if not _is_ours(a)]
            block["annotations"] = [*kept, *new]
        start = end
    if not any(map(_has_ours, blocks)):
        return message
    # With this mark, integrations read the blocks as LangChain's own and not as the provider's.
    marked = {**message.response_metadata, "output_version": "v1"}
    return message.model_copy(update={"content": blocks, "response_metadata": marked})


def with_text(message: MessageT, text: str) -> MessageT:
    """Put another text in the place of a message's text.

    Args:
        message: The message.
        text: The new text.

    Returns:
        The message with only this text as its content, and without the provider's copies of the
        old one.
    """
    extra = {k: v for k, v in message.additional_kwargs.items() if k not in {"parsed", "refusal"}}
    return message.model_copy(update={"content": text, "additional_kwargs": extra})


def without_annotations(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Give the messages as they were before they were annotated, for a model to read.

    Not every provider accepts an annotation that it has not made.

    Args:
        messages: Messages of a conversation.

    Returns:
        The same messages, without annotations of this package.
    """
    return [_without_annotations(m) if isinstance(m, AIMessage) else m for m in messages]


def _without_annotations(message: AIMessage) -> AIMessage:
    if isinstance(message.content, str) or not any(_has_ours(b) for b in message.content):
        return message
    blocks: list[Any] = [_bare(block) for block in message.content]
    only = blocks[0] if len(blocks) == 1 else None
    if only is not None and set(only) == {"type", "text"}:
        metadata = {k: v for k, v in message.response_metadata.items() if k != "output_version"}
        update = {"content": only["text"], "response_metadata": metadata}
        return message.model_copy(update=update)
    return message.model_copy(update={"content": blocks})


def _has_ours(block: Any) -> bool:
    return isinstance(block, dict) and any(_is_ours(a) for a in block.get("annotations") or ())


def _bare(block: Any) -> Any:
    if not _has_ours(block):
        return block
    kept = [a for a in block["annotations"] if not _is_ours(a)]
    rest = {key: value for key, value in block.items() if key != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def _is_ours(annotation: Any) -> bool:
    if not isinstance(annotation, dict):
        return False
    inside = annotation.get("extras") or annotation.get("value") or {}
    return isinstance(inside, dict) and _OURS in inside


def _annotations(result: GroundednessResult, first: int, last: int) -> Iterator[Any]:
    """Give the annotations of the text between two offsets, with offsets relative to the first."""
    edited = {edit.claim_id for edit in result.edits if edit.correction}
    for verdict in result.claims:
        span = moved(result.edits, verdict)
        if span is None:
            continue
        start, end = max(span[0], first), min(span[1], last)
        if start >= end:
            continue
        found = {"claim": verdict.claim.id, "verdict": verdict.verdict}
        if verdict.verdict == "supported" or verdict.claim.id in edited:
            found["verdict"] = "corrected" if verdict.claim.id in edited else "supported"
            for citation in verdict.citations:
                yield _citation(citation, start - first, end - first, found)
        else:
            value = {"start_index": start - first, "end_index": end - first, _OURS: found}
            yield NonStandardAnnotation(type="non_standard_annotation", value=value)


def _citation(citation: Citation, start: int, end: int, found: dict[str, Any]) -> NativeCitation:
    where = {
        "document": citation.document,
        "document_id": citation.document_id,
        "start": citation.start,
        "end": citation.end,
    }
    native = NativeCitation(
        type="citation",
        start_index=start,
        end_index=end,
        cited_text=citation.quote,
        extras={_OURS: {**found, **where}},
    )
    source = citation.metadata.get("url") or citation.metadata.get("source")
    if isinstance(source, str) and "://" in source:
        native["url"] = source
    title = citation.metadata.get("title")
    if isinstance(title, str):
        native["title"] = title
    return native


def moved(edits: Sequence[Edit], verdict: ClaimVerdict) -> tuple[int, int] | None:
    """Find the span of a claim in the text that the edits have made.

    Args:
        edits: Edits of the answer, in order.
        verdict: The verdict on a claim.

    Returns:
        Its span; `None` if it has none or none is left.
    """
    start, end = verdict.claim.start, verdict.claim.end
    if start is None or end is None:
        return None
    new_start = _moved(edits, start, after=False)
    new_end = _moved(edits, end, after=True)
    return (new_start, new_end) if new_start < new_end else None


def _moved(edits: Sequence[Edit], place: int, *, after: bool) -> int:
    shift = 0
    for edit in edits:
        grown = len(edit.replacement) - (edit.end - edit.start)
        if edit.end <= place:
            shift += grown
        elif edit.start < place:
            # Inside an edit: the whole replacement belongs to the claim.
            inside = len(edit.replacement) if after else 0
            return edit.start + shift + inside
    return place + shift
