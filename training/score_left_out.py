"""Score every claim set of `train/` by the encoder that was trained without it.

Prints how well it ranks the claims (AUC) by the number of words that it reads for each; what is
written is what it says of the number that the package reads.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from claim_sets import CLAIM_SETS, digest, read_set
from export_encoder import export
from score_encoder import score
from sklearn.metrics import roc_auc_score
from train_combination import readings_of
from train_encoder import STAGES

from langchain_groundedness.verification.embedded.encoder import load_encoder
from langchain_groundedness.verification.embedded.windows import WORDS

_OUT = Path(__file__).parents[1] / "benchmarks" / "left_out"


def main() -> None:
    """Write `SET.npy` for each: a row of logits per claim, in the order of the file.

    Beside them `claims.json`: which claims these were.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--work", type=Path, required=True, help="folder of train_encoder.py")
    parser.add_argument("--out", type=Path, default=_OUT)
    parser.add_argument("--words", type=int, action="append", default=[], help="to compare with")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    digests = {}
    for stage in ("without_texts", "without_facts"):
        with TemporaryDirectory() as folder:
            export(options.work, stage, Path(folder))
            model = load_encoder(Path(folder), options.threads)
            for name in CLAIM_SETS:
                if name not in STAGES[stage].sets:
                    examples = read_set(options.data, name)
                    digests[name] = digest(examples)
                    labels = [example.supported for example in examples]
                    for words in sorted({WORDS, *options.words}):
                        logits = score(examples, model, words=words)
                        odds = readings_of(logits)
                        auc = roc_auc_score(labels, np.nan_to_num(odds, nan=np.nanmin(odds)))
                        print(f"{name} by {stage}, {words} words: AUC {auc:.3f}", flush=True)
                        if words == WORDS:
                            np.save(options.out / f"{name}.npy", logits.astype(np.float16))
    (options.out / "claims.json").write_text(json.dumps(digests, indent=2) + "\n")


if __name__ == "__main__":
    main()
