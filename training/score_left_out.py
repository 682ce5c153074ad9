"""Score every claim set of `train/` by the encoder that was trained without it."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from claim_sets import CLAIM_SETS, read_set
from export_encoder import export
from score_encoder import score
from train_encoder import STAGES

from langchain_groundedness.verifiers._encoder import load_encoder

_OUT = Path(__file__).parents[1] / "benchmarks" / "left_out"


def main() -> None:
    """Write `SET.npy` for each: a row of logits per claim, in the order of the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--work", type=Path, required=True, help="folder of train_encoder.py")
    parser.add_argument("--out", type=Path, default=_OUT)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for stage in ("without_texts", "without_facts"):
        with TemporaryDirectory() as folder:
            export(options.work, stage, Path(folder))
            model = load_encoder(Path(folder), options.threads)
            for name in CLAIM_SETS:
                if name not in STAGES[stage].sets:
                    logits = score(read_set(options.data, name), model)
                    np.save(options.out / f"{name}.npy", logits.astype(np.float16))
                    print(name, "by", stage, flush=True)


if __name__ == "__main__":
    main()
