# %% [markdown]
# # Migrate from Haystack, ragas, LettuceDetect or NeMo
#
# You already check answers with another library. For each of four libraries, this notebook shows
# the code there (as text, not run), the same check here (run), and which numbers stay comparable.
# `as_score`, a recipe beside this notebook, applies their formula to our verdicts. It cannot
# promise the same verdicts: another judge judges differently. The formulas were compared number for
# number with haystack-ai 3.4.1, ragas 0.4.3 and deepeval 4.3.1.
#
# Everything runs offline: the embedded verifier judges where the other libraries call a model.
#
# `pip install langchain-groundedness`
#
# *Expect* one of five answers about `papers/`, all with planted errors.

# %% tags=["varies"]
from recipes.scores_of_other_libraries import as_score
from samples import read_documents, read_lines, table

from langchain_groundedness import DecisionPolicy, GroundednessGuard, GroundednessRunnable
from langchain_groundedness.evals import FaithfulnessEvaluator, evaluate, summarize

texts = {each.id: each.page_content for each in read_documents("papers")}
asked = read_lines("papers/answers.jsonl")
questions = [each["question"] for each in asked]
answers = [each["answer"] for each in asked]
contexts = [[texts[each["source"]]] for each in asked]

GroundednessRunnable().invoke(
    {"question": questions[0], "answer": answers[0], "documents": contexts[0]}
)

# %% [markdown]
# ## Your own judge
#
# You can pass a model wherever the other libraries take one. Without a model, nothing leaves the
# machine.
#
# | | |
# |---|---|
# | OpenAI | `FaithfulnessEvaluator(model=ChatOpenAI(model="gpt-4o-mini"))` |
# | Anthropic | `FaithfulnessEvaluator(model=ChatAnthropic(model="claude-haiku-4-5"))` |
# | Ollama | `FaithfulnessEvaluator(model=ChatOllama(model="qwen2.5:7b"))` |
# | vLLM | as OpenAI, with `base_url="http://localhost:8000/v1", api_key="none"` |
#
# `GroundednessRunnable` takes `model=` in the same way.

# %% [markdown]
# ## Haystack
#
# There:
#
# ```python
# from haystack.components.evaluators import FaithfulnessEvaluator
#
# evaluator = FaithfulnessEvaluator()  # asks OpenAI
# result = evaluator.run(questions=questions, contexts=contexts, predicted_answers=answers)
# result["score"], result["individual_scores"], result["results"][0]["statements"]
# ```
#
# Here, you change the import; the call and the keys stay the same. *Expect* a score per answer, and
# statements with 0 or 1.

# %%
result = FaithfulnessEvaluator().run(
    questions=questions, contexts=contexts, predicted_answers=answers
)
print(f"{result['score']:.3f}", [round(score, 3) for score in result["individual_scores"]])
first = result["results"][0]
for statement, score in zip(first["statements"], first["statement_scores"], strict=True):
    print(score, statement)

# %% [markdown]
# Both scores are the share of supported statements. They differ if there are none: an answer
# without any statement scores 0 there; here it has no score, and is counted separately from the
# mean. *Expect* a lower mean by Haystack's convention as soon as one answer says that it does not
# know.

# %%
replies = [*answers, "I do not know."]
run = evaluate(
    [
        {"answer": answer, "contexts": shown}
        for answer, shown in zip(replies, [*contexts, contexts[0]], strict=True)
    ],
    FaithfulnessEvaluator(),
)
scores = [score for row in run.rows for score in row.scores]
print(f"here     {summarize(run)['metrics']['faithfulness']['mean']:.3f}")
print(f"haystack {as_score(scores, convention='haystack'):.3f}")

# %% [markdown]
# ## ragas
#
# There:
#
# ```python
# from openai import AsyncOpenAI
# from ragas.llms import llm_factory
# from ragas.metrics.collections import Faithfulness
#
# metric = Faithfulness(llm=llm_factory("gpt-4o-mini", client=AsyncOpenAI()))
# results = await metric.abatch_score(
#     [{"user_input": ..., "response": ..., "retrieved_contexts": [...]}, ...]
# )
# [each.value for each in results]
# ```
#
# Here, rows with ragas' column names are read as they are. *Expect* the same scores as above, and
# what ragas' number does not show: which claim failed, and why.

# %%
rows = [
    {"user_input": question, "response": answer, "retrieved_contexts": shown}
    for question, answer, shown in zip(questions, answers, contexts, strict=True)
]
run = evaluate(rows, FaithfulnessEvaluator())
scores = [score for row in run.rows for score in row.scores]
print([round(score.score, 3) for score in scores])
print(f"ragas    {as_score(scores, convention='ragas'):.3f}")
print(f"deepeval {as_score(scores, convention='deepeval'):.3f}")

# %% tags=["varies"]
scores[1].result

# %% [markdown]
# deepeval's number is higher: claims that the documents do not mention pass there, unless
# `penalize_ambiguous_claims` is set. Made-up facts are such claims.

# %%
print(f"{as_score(scores, convention='deepeval', penalize_ambiguous_claims=True):.3f}")

# %% [markdown]
# ## LettuceDetect
#
# There, you get the spans of the answer that the context does not support:
#
# ```python
# from lettucedetect import HallucinationDetector
#
# detector = HallucinationDetector(
#     method="transformer", model_path="KRLabsOrg/lettucedect-base-modernbert-en-v1"
# )
# spans = detector.predict(
#     context=contexts[1], question=questions[1], answer=answers[1], output_format="spans"
# )
# # [{"start": ..., "end": ..., "confidence": ..., "text": ...}]
# ```
#
# Here, each claim has its offsets in the answer, so one line makes spans. They are whole sentences,
# where LettuceDetect marks words; `correction` has the right value. LettuceDetect has no number per
# answer to compare. *Expect* at least two spans. Three sentences are wrong, but the previous year's
# fuel costs are hard to see for a small model.

# %% tags=["varies"]
result = GroundednessRunnable().invoke(
    {"question": questions[1], "answer": answers[1], "documents": contexts[1]}
)
spans = [
    {
        "start": found.claim.start,
        "end": found.claim.end,
        "confidence": round(1 - (found.support_probability or 0), 2),
        "text": answers[1][found.claim.start : found.claim.end],
    }
    for found in result.claims
    if found.verdict in {"contradicted", "unverifiable"}
]
print(*spans, sep="\n")

# %% [markdown]
# A claim that was *not* checked is in neither list. *Expect* it to be reported: an empty list of
# spans means "nothing wrong" only if nothing is unchecked.


# %%
def broken(task):
    raise TimeoutError


unsure = GroundednessRunnable(verifier=broken).invoke(
    {"answer": answers[1], "documents": contexts[1]}
)
print([found.verdict for found in unsure.claims], unsure.verdict, unsure.decision.action)

# %% [markdown]
# ## NeMo Guardrails
#
# There, a rail in the configuration asks a model for yes or no about the whole answer:
#
# ```yaml
# rails:
#   output:
#     flows:
#       - self check facts
# prompts:
#   - task: self_check_facts
#     content: |-
#       Is the hypothesis entailed by the evidence? Answer yes or no.
#       Evidence: {{ evidence }}  Hypothesis: {{ response }}
# ```
#
# A message passes the documents:
#
# ```python
# rails = LLMRails(RailsConfig.from_path("config"))
# rails.generate(messages=[
#     {"role": "context", "content": {"relevant_chunks": text, "check_facts": True}},
#     {"role": "user", "content": question},
# ])
# ```
#
# Here, a policy decides, and a guard after the chain releases the text that passes, sentence by
# sentence, while the answer is written. *Expect* the answer to end before the first contradicted
# sentence.

# %%
guard = GroundednessGuard(
    GroundednessRunnable(on_contradicted="block", policy=DecisionPolicy(contradicted="block")),
    blocked_message="[The rest does not agree with our documents.]",
)
shown = guard.invoke({"question": questions[2], "answer": answers[2], "documents": contexts[2]})
print(shown)

# %% [markdown]
# The defaults differ if there are no documents: NeMo's rail lets the answer pass; here it is
# unchecked, and marked. *Expect* that mark.

# %%
print(guard.invoke({"question": questions[2], "answer": answers[2], "documents": []}))

# %% [markdown]
# NeMo's number is 1 or 0 for a whole answer. *Expect* the same from `is_trusted`: none of the five.

# %%
checked = GroundednessRunnable().batch(
    [
        {"question": question, "answer": answer, "documents": shown}
        for question, answer, shown in zip(questions, answers, contexts, strict=True)
    ]
)
print([float(result.is_trusted) for result in checked])

# %% [markdown]
# ## Side by side
#
# The table shows each library's number for the five answers. *Expect* equal numbers where the
# formula is the same, and none where there is none.

# %%
names = ("haystack", "ragas", "deepeval")


def row_of(each, result):
    scores = [result.trust_score, *(as_score(result, convention=name) for name in names)]
    shown = ("-" if score is None else f"{score:.3f}" for score in scores)
    return (each["id"], *shown, int(result.is_trusted))


table(
    ("answer", "here", *names, "NeMo: pass"),
    (row_of(each, result) for each, result in zip(asked, checked, strict=True)),
)

# %% [markdown]
# ## Other differences
#
# | there | here |
# |---|---|
# | Haystack: `ContextRelevanceEvaluator` | the same name, and `run(questions=, contexts=)` |
# | Haystack: a failure loses the batch | a row that fails says why, the others have scores |
# | ragas: `ContextRecall`, `FactualCorrectness`, ... | the same names with `Evaluator` |
# | ragas: NaN | no score, a status and a reason |
# | LettuceDetect: spans | `claim.start`, `claim.end`, verdict, quote, correction |
# | NeMo: flows in YAML | `DecisionPolicy.from_yaml(...)`: rules lead to a decision |
#
# `as_score(..., metric=...)` also has the formulas of the other metrics.
