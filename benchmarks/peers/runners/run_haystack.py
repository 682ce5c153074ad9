import asyncio

from common import MODEL, SAMPLES, Clock, args, finish, supported_share
from haystack.components.evaluators import FaithfulnessEvaluator
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.utils import Secret

gen = OpenAIChatGenerator(
    api_key=Secret.from_token("stub"),
    model=MODEL,
    api_base_url=args.base_url,
    generation_kwargs={"response_format": {"type": "json_object"}, "seed": 42},
)
ev = FaithfulnessEvaluator(chat_generator=gen, progress_bar=False)
kw = {
    "questions": [s["question"] for s in SAMPLES],
    "contexts": [s["contexts"] for s in SAMPLES],
    "predicted_answers": [s["answer"] for s in SAMPLES],
}
ev.warm_up()
with Clock() as c:
    res = ev.run(**kw) if args.mode == "run" else asyncio.run(ev.run_async(**kw))
finish(c.wall, [float(x) for x in res["individual_scores"]], supported_share)
