import tempfile

from common import MODEL, SAMPLES, Clock, args, finish, fully_grounded
from lettucedetect import HallucinationDetector

cache = tempfile.mkdtemp() + "/cache.json"  # a fresh cache: the default one lives in site-packages
det = HallucinationDetector(
    method="llm", model=MODEL, cache_file=cache, base_url=args.base_url, api_key="stub"
)
scores = []
with Clock() as c:
    for s in SAMPLES:
        spans = det.predict(
            context=s["contexts"], answer=s["answer"], question=s["question"], output_format="spans"
        )
        scores.append(float(not spans))
finish(c.wall, scores, fully_grounded, "returns the unsupported spans")
