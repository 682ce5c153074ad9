"""A web page on which reviewers decide about doubtful answers.

`langchain-groundedness review --db URL` serves it; `create_review_app` makes it an ASGI app for
your own server. Needs the extra `review`.
"""

from langchain_groundedness.exceptions import require

for _needed in ("starlette", "jinja2"):
    require(_needed, extra="review")

from langchain_groundedness.review.app import create_review_app  # noqa: E402  (`require` comes first)

__all__ = ["create_review_app"]
