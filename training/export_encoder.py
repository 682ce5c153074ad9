"""Export the trained encoder to an int8 ONNX graph, with its tokenizer and checksums.

Weights are rounded to int8 per column. Activations get fixed scales, measured on training pairs:
scales that follow the batch (ONNX Runtime's dynamic quantization) would make a score depend on what
else is in the batch, and on its padding.
"""

import argparse
import gzip
import hashlib
import json
import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import torch
from encoder_network import EvidenceEncoder, load_start, pair_tokenizer
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from safetensors.torch import save_file
from tokenizers import Tokenizer
from train_encoder import STAGES

__all__ = ["export", "mean_of"]

_OUT = Path(__file__).parents[1] / "langchain_groundedness" / "model"
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_CALIBRATION_PAIRS = 256
_PER_RUN = 16
_LONGEST = 288


def main() -> None:
    """Export a stage, by default the one that is shipped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of train_encoder.py")
    parser.add_argument("--stage", choices=STAGES, default="all")
    parser.add_argument(
        "--mean-with",
        nargs=2,
        action="append",
        default=[],
        metavar=("WEIGHTS", "SHARE"),
        help="weights to take the mean with, and their share in it; may be given again",
    )
    parser.add_argument("--keep", type=Path, help="write the mean there too, in half precision")
    parser.add_argument("--out", type=Path, default=_OUT)
    options = parser.parse_args()
    shares = {Path(weights): float(share) for weights, share in options.mean_with}
    model = mean_of(options.work / f"{options.stage}.safetensors", shares)
    if options.keep:
        save_file({n: p.half() for n, p in model.state_dict().items()}, options.keep)
    export(options.work, model, options.out)


def export(work: Path, model: EvidenceEncoder, out: Path) -> None:
    """Write `encoder.onnx`, `tokenizer.json` and `encoder.json`, their checksums.

    Args:
        work: The folder of `train_encoder.py`.
        model: The network.
        out: A folder.
    """
    target = out / "encoder.onnx"
    tokenizer = pair_tokenizer()
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    pairs = [work / "pairs" / f"{name}.jsonl.gz" for name in STAGES["all"].sets]
    feeds = _feeds(pairs, tokenizer)
    with TemporaryDirectory() as folder:
        plain, clean = Path(folder) / "plain.onnx", Path(folder) / "clean.onnx"
        _export(model, plain)
        quant_pre_process(str(plain), str(clean), skip_symbolic_shape=True)
        quantize_dynamic(clean, target, weight_type=QuantType.QInt8, per_channel=True)
        rounded = onnx.load(target)
        onnx.save(_with_fixed_scales(rounded, _ranges(onnx.load(clean), rounded, feeds)), target)
        _compare(plain, target, feeds)
    files = {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in ("encoder.onnx", "tokenizer.json")
    }
    (out / "encoder.json").write_text(json.dumps({"sha256": files}, indent=2) + "\n")


def mean_of(weights: Path, others: Mapping[Path, float]) -> EvidenceEncoder:
    """Take the mean of weights, which keeps more of what each of them could.

    That is WiSE-FT where training started from one of them (Wortsman et al. 2022).

    Args:
        weights: A file of weights; its share is what the others leave.
        others: Shares of other files.

    Returns:
        The network.
    """
    model = load_start(weights)
    with torch.no_grad():
        for mine in model.parameters():
            mine.mul_(1 - sum(others.values()))
        for other, share in others.items():
            theirs = load_start(other)
            for mine, its in zip(model.parameters(), theirs.parameters(), strict=True):
                mine.add_(its, alpha=share)
    return model


def _export(model: EvidenceEncoder, target: Path) -> None:
    model.body.set_attn_implementation("eager")
    model.eval()
    ids = torch.randint(1000, 2000, (2, 16))
    mask, types = torch.ones_like(ids), torch.zeros_like(ids)
    types[:, 10:] = 1
    torch.onnx.export(
        model,
        (ids, mask, types),
        str(target),
        input_names=list(_INPUTS),
        output_names=["logits"],
        dynamic_axes={name: {0: "pairs", 1: "tokens"} for name in _INPUTS}
        | {"logits": {0: "pairs"}},
        opset_version=17,
        dynamo=False,
    )


def _feeds(paths: list[Path], tokenizer: Tokenizer) -> list[dict[str, NDArray[np.int64]]]:
    rows = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows += [json.loads(line) for line in lines]
    rows = random.Random(0).sample(rows, k=min(_CALIBRATION_PAIRS, len(rows)))
    encoded = [tokenizer.encode(row["evidence"], row["claim"]) for row in rows]
    feeds = []
    for first in range(0, len(encoded), _PER_RUN):
        chunk = encoded[first : first + _PER_RUN]
        shape = (len(chunk), min(max(len(e.ids) for e in chunk), _LONGEST))
        feed = {name: np.zeros(shape, dtype=np.int64) for name in _INPUTS}
        for place, e in enumerate(chunk):
            size = min(len(e.ids), _LONGEST)
            feed["input_ids"][place, :size] = e.ids[:size]
            feed["attention_mask"][place, :size] = 1
            feed["token_type_ids"][place, :size] = e.type_ids[:size]
        feeds.append(feed)
    return feeds


def _ranges(
    plain: onnx.ModelProto, quantized: onnx.ModelProto, feeds: list[dict[str, NDArray[np.int64]]]
) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each tensor that is rounded at run time."""
    names = {n.input[0] for n in quantized.graph.node if n.op_type == "DynamicQuantizeLinear"}
    for name in sorted(names):
        plain.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(
        plain.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ranges = dict.fromkeys(names, (0.0, 0.0))
    for feed in feeds:
        for name, values in zip(sorted(names), session.run(sorted(names), feed), strict=True):
            low, high = ranges[name]
            ranges[name] = (min(low, float(values.min())), max(high, float(values.max())))
    return ranges


def _with_fixed_scales(
    model: onnx.ModelProto, ranges: dict[str, tuple[float, float]]
) -> onnx.ModelProto:
    nodes = []
    for node in model.graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            low, high = ranges[node.input[0]]
            scale = max((high - low) / 255, 1e-8)
            zero = np.uint8(np.clip(round(-low / scale), 0, 255))
            values = (np.float32(scale), zero)
            for name, value in zip(node.output[1:], values, strict=True):
                model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
            inputs = [node.input[0], node.output[1], node.output[2]]
            node = helper.make_node("QuantizeLinear", inputs, [node.output[0]], node.name)  # noqa: PLW2901  (takes its place)
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def _compare(plain: Path, quantized: Path, feeds: list[dict[str, NDArray[np.int64]]]) -> None:
    """Print how far the rounded model is from the plain one."""
    options = onnxruntime.SessionOptions()
    # Without it, sums of 8-bit products overflow on older processors.
    options.add_session_config_entry("session.x64quantprecision", "1")
    one, two = (
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for path in (plain, quantized)
    )
    shares = []
    for feed in feeds:
        rows = [session.run(None, feed)[0] for session in (one, two)]
        chances = [np.exp(r) / np.exp(r).sum(axis=1, keepdims=True) for r in rows]
        shares.append(np.abs(chances[0] - chances[1]).max(axis=1))
    apart = np.concatenate(shares)
    print(
        f"int8 against float: probabilities differ by {apart.mean():.4f}, at most {apart.max():.3f}"
    )


if __name__ == "__main__":
    main()
