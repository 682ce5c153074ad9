import asyncio

import warnings

warnings.filterwarnings("ignore")
from common import MODEL, SAMPLES, Clock, args, finish, supported_share

if args.mode == "evaluate":
    from langchain_openai import ChatOpenAI
    from ragas import EvaluationDataset, evaluate
    from ragas.llms import LangchainLLMWrapper
    from ragas.metrics import Faithfulness

    ds = EvaluationDataset.from_list(
        [
            {
                "user_input": s["question"],
                "response": s["answer"],
                "retrieved_contexts": s["contexts"],
            }
            for s in SAMPLES
        ]
    )
    llm = LangchainLLMWrapper(ChatOpenAI(model=MODEL, base_url=args.base_url, api_key="stub"))
    with Clock() as c:
        res = evaluate(ds, metrics=[Faithfulness(llm=llm)], show_progress=False)
    scores = [float(x["faithfulness"]) for x in res.scores]
else:
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics.collections import Faithfulness

    rows = [
        {"user_input": s["question"], "response": s["answer"], "retrieved_contexts": s["contexts"]}
        for s in SAMPLES
    ]

    async def go():
        llm = llm_factory(MODEL, client=AsyncOpenAI(base_url=args.base_url, api_key="stub"))
        m = Faithfulness(llm=llm)
        with Clock() as c:
            if args.mode == "collections-loop":
                out = [await m.ascore(**r) for r in rows]
            else:
                out = await m.abatch_score(rows)
        return c, [float(r.value) for r in out]

    c, scores = asyncio.run(go())
finish(c.wall, scores, supported_share)
