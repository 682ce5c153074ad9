import re

from common import MODEL, SAMPLES, Clock, args, finish, supported_share
from trulens.feedback import llm_provider
from trulens.providers.openai import OpenAI

# offline: nltk's punkt data cannot be downloaded; every sentence here ends in a full stop
llm_provider.nltk.download = lambda *_args, **_kwargs: True
llm_provider.sent_tokenize = lambda text: re.split(r"(?<=\.)\s+", text)

kw = {} if args.mode == "default-60rpm" else {"rpm": 100_000}
provider = OpenAI(model_engine=MODEL, api_key="stub", base_url=args.base_url, **kw)
scores = []
with Clock() as c:
    for s in SAMPLES:
        score, _ = provider.groundedness_measure_with_cot_reasons(
            "\n".join(s["contexts"]), s["answer"]
        )
        scores.append(float(score))
finish(c.wall, scores, supported_share)
