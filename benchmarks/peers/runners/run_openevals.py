import asyncio

from common import MODEL, SAMPLES, Clock, args, finish, fully_grounded
from langchain_openai import ChatOpenAI
from openevals.llm import create_async_llm_as_judge, create_llm_as_judge
from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

judge = ChatOpenAI(model=MODEL, base_url=args.base_url, api_key="stub")
kw = {"prompt": RAG_GROUNDEDNESS_PROMPT, "judge": judge, "feedback_key": "groundedness"}
rows = [
    {"context": {"documents": s["contexts"]}, "outputs": {"answer": s["answer"]}} for s in SAMPLES
]
if args.mode == "loop":
    ev = create_llm_as_judge(**kw)
    with Clock() as c:
        res = [ev(**r) for r in rows]
else:
    ev = create_async_llm_as_judge(**kw)

    async def go():
        return await asyncio.gather(*(ev(**r) for r in rows))

    with Clock() as c:
        res = asyncio.run(go())
finish(
    c.wall, [float(r["score"]) for r in res], fully_grounded, "one true/false for the whole answer"
)
