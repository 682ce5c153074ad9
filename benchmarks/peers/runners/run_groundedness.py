from common import MODEL, SAMPLES, Clock, args, finish
from groundedness import check


def share_of_text(s):
    bad = sum(len(c["text"]) for c in s["claims"] if c["label"] != "supported")
    return max(0.0, 1.0 - min(1.0, bad / len(s["answer"])))


with Clock() as c:
    scores = [
        check(s["answer"], s["contexts"], MODEL, base_url=args.base_url, api_key="stub").score
        for s in SAMPLES
    ]
finish(c.wall, scores, share_of_text, "one call also rewrites the answer")
