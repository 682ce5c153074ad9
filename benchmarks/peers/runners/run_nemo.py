import asyncio

from common import MODEL, SAMPLES, Clock, args, finish, fully_grounded
from nemoguardrails import LLMRails, RailsConfig

CONFIG = f"""
models:
  - type: main
    engine: openai
    model: {MODEL}
    parameters:
      base_url: {args.base_url}
      api_key: stub
rails:
  output:
    flows:
      - self check facts
prompts:
  - task: self_check_facts
    content: |-
      You are given a task to identify if the hypothesis is grounded and entailed to the evidence.
      You will only use the contents of the evidence and not rely on external knowledge.
      Answer with yes/no. "evidence": {{{{ evidence }}}} "hypothesis": {{{{ response }}}} "entails":
"""
rails = LLMRails(RailsConfig.from_content(yaml_content=CONFIG))


async def one(s):
    res = await rails.generate_async(
        messages=[
            {
                "role": "context",
                "content": {"relevant_chunks": "\n".join(s["contexts"]), "check_facts": True},
            },
            {"role": "user", "content": s["question"]},
            {"role": "assistant", "content": s["answer"]},
        ],
        options={"rails": ["output"]},
    )
    return float(res.response[-1]["content"] == s["answer"])


async def go():
    if args.mode == "loop":
        return [await one(s) for s in SAMPLES]
    return list(await asyncio.gather(*(one(s) for s in SAMPLES)))


with Clock() as c:
    scores = asyncio.run(go())
finish(c.wall, scores, fully_grounded, "one pass/block for the whole answer")
