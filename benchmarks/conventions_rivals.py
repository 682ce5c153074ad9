"""Has one rival score cases whose verdicts are given; run by `conventions.py`, in its environment.

Reads a list of cases as JSON from stdin, and writes `{"version": ..., "scores": [...]}` to stdout:
a number, or `null` where the rival has none (NaN, or it raises).
"""

import asyncio
import importlib.metadata
import json
import math
import os
import sys
import tempfile
import warnings
from typing import Any

os.environ.update(
    HAYSTACK_TELEMETRY_ENABLED="False",
    RAGAS_DO_NOT_TRACK="true",
    DEEPEVAL_TELEMETRY_OPT_OUT="1",
    DEEPEVAL_DISABLE_DOTENV="1",
    DO_NOT_TRACK="1",
)
warnings.filterwarnings("ignore")

Case = dict[str, Any]


def haystack(case: Case) -> float | None:
    """Have haystack-ai count the verdicts that its chat generator replies with."""
    from haystack import component  # noqa: PLC0415  (each rival has an environment of its own)
    from haystack.components.evaluators import (  # noqa: PLC0415
        ContextRelevanceEvaluator,
        FaithfulnessEvaluator,
    )
    from haystack.dataclasses import ChatMessage  # noqa: PLC0415

    relevance = case["metric"] == "context_relevance"
    if case["metric"] != "faithfulness" and not relevance:
        raise LookupError
    contexts = zip(case["contexts"], case["documents"], strict=True)
    reply: Any = {
        "relevant_statements": [text for text, letter in contexts if letter == "1"],
        "statements": case["answer_statements"],
        "statement_scores": [int(letter == "s") for letter in case["claims"]],
    }
    text = "no JSON" if "-" in case["claims"] else json.dumps(reply)

    @component
    class Judge:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage]) -> Any:
            return {"replies": [ChatMessage.from_assistant(text)]}

    kind = ContextRelevanceEvaluator if relevance else FaithfulnessEvaluator
    evaluator = kind(chat_generator=Judge(), progress_bar=False, raise_on_failure=False)
    answers = {} if relevance else {"predicted_answers": [case["answer"]]}
    result = evaluator.run(questions=[case["question"]], contexts=[case["contexts"]], **answers)
    return result["individual_scores"][0]


def ragas(case: Case) -> float | None:
    """Have ragas count the verdicts that its instructor model replies with."""
    from ragas.embeddings.base import BaseRagasEmbedding  # noqa: PLC0415
    from ragas.llms.base import InstructorBaseRagasLLM  # noqa: PLC0415
    from ragas.metrics.collections import (  # noqa: PLC0415
        AnswerCorrectness,
        ContextPrecision,
        ContextRecall,
        FactualCorrectness,
        Faithfulness,
    )

    class Judge(InstructorBaseRagasLLM):
        def generate(self, prompt: str, response_model: Any) -> Any:
            return asyncio.run(self.agenerate(prompt, response_model))

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            return response_model.model_validate(_ragas_reply(case, prompt, response_model))

    class Vectors(BaseRagasEmbedding):
        def embed_text(self, text: str, **_: Any) -> list[float]:
            cosine = case["cosine"]
            second = [cosine, (1 - cosine**2) ** 0.5]
            return [1.0, 0.0] if text == case["answer"] else second

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self.embed_text(text)

    asked = {"user_input": case["question"]}
    said = {"response": case["answer"]}
    right = {"reference": case["reference"]}
    found = {"retrieved_contexts": case["contexts"]}
    options = {"beta": case["beta"]}
    metrics: dict[str, Any] = {
        "faithfulness": (lambda: Faithfulness(llm=Judge()), asked | said | found),
        "context_precision": (lambda: ContextPrecision(llm=Judge()), asked | right | found),
        "context_recall": (lambda: ContextRecall(llm=Judge()), asked | right | found),
        "factual_correctness": (
            lambda: FactualCorrectness(llm=Judge(), mode=case["mode"], **options),
            said | right,
        ),
        "answer_correctness": (
            lambda: AnswerCorrectness(llm=Judge(), embeddings=Vectors(), **options),
            asked | said | right,
        ),
    }
    if case["metric"] not in metrics:
        raise LookupError
    make, row = metrics[case["metric"]]
    return asyncio.run(make().ascore(**row)).value


def _ragas_reply(case: Case, prompt: str, schema: Any) -> Any:
    name = schema.__name__
    # Prompts end with their input, so what it is about stands last.
    asked = prompt[max(prompt.rfind('"answer"'), prompt.rfind('"response"')) :]
    about = "answer" if case["answer"] in asked else "reference"
    if name == "StatementGeneratorOutput":
        return {"statements": case[f"{about}_statements"]}
    if name == "ClaimDecompositionOutput":
        return {"claims": case[f"{about}_statements"]}
    if name == "NLIStatementOutput":
        verdicts, judged = _by_text(case), prompt[prompt.rfind('"statements"') :]
        return {
            "statements": [
                {"statement": text, "reason": "", "verdict": int(letter == "s")}
                for text, letter in verdicts.items()
                if text in judged and letter != "-"
            ]
        }
    if name == "ContextPrecisionOutput":
        hits = [
            int(letter == "1")
            for text, letter in zip(case["contexts"], case["documents"], strict=True)
            if text in prompt
        ]
        return {"reason": "", "verdict": hits[0]}
    if name == "ContextRecallOutput":
        return {
            "classifications": [
                {"statement": text, "reason": "", "attributed": int(letter == "s")}
                for text, letter in zip(
                    case["reference_statements"], case["reference_claims"], strict=True
                )
                if letter != "-"
            ]
        }
    if name == "ClassificationWithReason":
        said = list(zip(case["answer_statements"], case["claims"], strict=True))
        right = list(zip(case["reference_statements"], case["reference_claims"], strict=True))
        kinds = {
            "TP": [text for text, letter in said if letter == "s"],
            "FP": [text for text, letter in said if letter != "s"],
            "FN": [text for text, letter in right if letter != "s"],
        }
        return {
            kind: [{"statement": text, "reason": ""} for text in listed]
            for kind, listed in kinds.items()
        }
    raise NotImplementedError(name)


def deepeval(case: Case) -> float | None:
    """Have deepeval count the verdicts that its model replies with."""
    from deepeval.metrics import (  # noqa: PLC0415
        ContextualPrecisionMetric,
        ContextualRecallMetric,
        FaithfulnessMetric,
    )
    from deepeval.models import DeepEvalBaseLLM  # noqa: PLC0415
    from deepeval.test_case import LLMTestCase  # noqa: PLC0415

    class Judge(DeepEvalBaseLLM):
        def load_model(self, *_: Any, **__: Any) -> Any:
            return None

        def get_model_name(self, *_: Any, **__: Any) -> str:
            return "script"

        def generate(self, prompt: str, schema: Any = None, **_: Any) -> str:
            return json.dumps(_deepeval_reply(case, prompt))

        async def a_generate(self, prompt: str, schema: Any = None, **_: Any) -> str:
            return self.generate(prompt)

    metrics = {
        "faithfulness": FaithfulnessMetric,
        "context_precision": ContextualPrecisionMetric,
        "context_recall": ContextualRecallMetric,
    }
    if case["metric"] not in metrics:
        raise LookupError
    options = {"include_reason": False, "async_mode": False}
    if case["mode"] == "penalize":
        options["penalize_ambiguous_claims"] = True
    metric = metrics[case["metric"]](model=Judge("script"), **options)
    test = LLMTestCase(
        input=case["question"],
        actual_output=case["answer"],
        expected_output=case["reference"],
        retrieval_context=case["contexts"],
    )
    return metric.measure(test, _show_indicator=False)


def _deepeval_reply(case: Case, prompt: str) -> Any:
    said = {"s": "yes", "c": "no", "u": "borderline", "-": "perhaps"}
    if case["metric"] == "faithfulness":
        if '"truths"' in prompt:
            return {"truths": ["There are facts."]}
        if '"claims"' in prompt and '"verdicts"' not in prompt:
            return {"claims": case["answer_statements"]}
        letters = [said[letter] for letter in case["claims"]]
    elif case["metric"] == "context_recall":
        letters = [{"s": "yes", "-": "perhaps"}.get(x, "no") for x in case["reference_claims"]]
    else:
        letters = ["yes" if letter == "1" else "no" for letter in case["documents"]]
    return {"verdicts": [{"verdict": letter, "reason": ""} for letter in letters]}


def _by_text(case: Case) -> dict[str, str]:
    said = zip(case["answer_statements"], case["claims"], strict=True)
    right = zip(case["reference_statements"], case["reference_claims"], strict=True)
    return dict(said) | dict(right)


PACKAGES = {"haystack": "haystack-ai", "ragas": "ragas", "deepeval": "deepeval"}


def main() -> None:
    """Score the cases by the rival named on the command line."""
    rival = sys.argv[1]
    score = {"haystack": haystack, "ragas": ragas, "deepeval": deepeval}[rival]
    cases, out = json.load(sys.stdin), sys.stdout
    sys.stdout = sys.stderr  # what a rival prints is not part of the reply
    os.chdir(tempfile.mkdtemp())  # one of them leaves files where it runs
    scores: dict[str, float | None] = {}
    for case in cases:
        try:
            value = score(case)
        except LookupError:
            continue  # the rival has no such metric
        except ValueError:
            value = None
        given = value is not None and not math.isnan(value)
        scores[case["name"]] = float(value) if given else None
    version = importlib.metadata.version(PACKAGES[rival])
    json.dump({"version": version, "scores": scores}, out)


if __name__ == "__main__":
    main()
