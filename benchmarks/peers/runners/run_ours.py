import asyncio

from common import MODEL, SAMPLES, Clock, args, finish, supported_share
from langchain_openai import ChatOpenAI

from langchain_groundedness import GroundednessRunnable, SentenceClaimExtractor, SinglePassJudge

model = ChatOpenAI(model=MODEL, base_url=args.base_url, api_key="stub", use_responses_api=False)
way, _, call = args.mode.rpartition("-")
if call == "embedded":
    checker = GroundednessRunnable()
elif way == "single":
    checker = GroundednessRunnable(model=model, single_pass=True)
elif way == "lines":
    checker = GroundednessRunnable(single_pass=SinglePassJudge(model=model, reply_form="lines"))
elif way == "sentences":
    checker = GroundednessRunnable(model=model, extractor=SentenceClaimExtractor())
else:
    checker = GroundednessRunnable(model=model)
checker.warm_up()
rows = [
    {"question": s["question"], "answer": s["answer"], "documents": s["contexts"]} for s in SAMPLES
]
if call == "abatch":
    with Clock() as c:
        results = asyncio.run(checker.abatch(rows, {"max_concurrency": 16}))
else:
    with Clock() as c:
        results = [checker.invoke(row) for row in rows]
unchecked = [any(v.verdict == "unchecked" for v in r.claims) for r in results]
scores = [None if bad else r.trust_score for r, bad in zip(results, unchecked, strict=True)]
finish(c.wall, scores, supported_share, "verdicts, quotes, corrections", unchecked=sum(unchecked))
