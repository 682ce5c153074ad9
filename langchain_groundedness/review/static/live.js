// Reads the events of an answer, and shows its text with the verdicts on its claims.
"use strict";

const SIGNS = { supported: "✓", contradicted: "✗", unverifiable: "?", unchecked: "!", pending: "…" };
const WORST_FIRST = ["contradicted", "unchecked", "unverifiable", "pending", "supported"];
const by = (id) => document.getElementById(id);
let text, claims, edits, hidden, reader; // of the question asked last

function made(tag, classes, ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  element.append(...children);
  return element;
}

// Characters that nobody sees are shown by name, as the server says.
const seen = (value) => Array.from(value, (char) => hidden[char] ?? char).join("");

function reset() {
  [text, claims, edits, hidden] = ["", new Map(), [], {}];
  by("problem").hidden = true;
  by("found").hidden = false;
  by("decision").textContent = "";
}

const take = {
  hidden: (data) => Object.assign(hidden, data),
  text: (data) => { text += data; },
  "groundedness.claim": (claim) => claims.set(claim.id, { claim, verdict: "pending" }),
  words: ({ claim_id: id, evidence }) => claims.set(id, { ...claims.get(id), evidence }),
  "groundedness.verdict": (found) => claims.set(found.claim.id, { ...claims.get(found.claim.id), ...found }),
  "groundedness.correction": (edit) => {
    const found = claims.get(edit.claim_id);
    if (found) found.change = edit.replacement ? "corrected" : "removed";
  },
  "groundedness.retract": (edit) => edits.push(edit),
  "groundedness.decision": (data) => decided(data),
  problem: ({ message }) => complain(message),
  end: () => {},
};

function complain(message) {
  by("problem").textContent = message;
  by("problem").hidden = false;
  by("found").hidden = !text;
}

function decided({ verdict, decision, final }) {
  const words = (value) => value.replaceAll("_", " ");
  const tags = [made("span", `tag a-${verdict}`, words(verdict))];
  if (edits.length) tags.push("after the changes", made("span", `tag a-${final.verdict}`, words(final.verdict)));
  by("decision").replaceChildren(...tags, made("span", `tag d-${decision.action}`, decision.action));
  by("live").textContent = `${claims.size} claims: ${words(verdict)}`;
}

// --- the answer ---

function pieces() {
  const chars = Array.from(text); // offsets count code points
  const spans = [...claims.values()].filter(({ claim }) => claim.start !== null && claim.start < chars.length);
  const at = [0, chars.length, ...edits.flatMap((edit) => [edit.start, edit.end]),
    ...spans.flatMap(({ claim }) => [claim.start, claim.end])].filter((place) => place <= chars.length);
  const borders = [...new Set(at)].sort((one, other) => one - other);
  const parts = [];
  borders.forEach((start, place) => {
    const end = borders[place + 1] ?? start;
    const covers = ({ claim }) => claim.start <= start && end <= claim.end;
    const verdicts = spans.filter(covers).map((found) => found.verdict);
    const verdict = WORST_FIRST.find((each) => verdicts.includes(each));
    const gone = edits.some((edit) => edit.start <= start && end <= edit.end);
    const shown = seen(chars.slice(start, end).join(""));
    if (shown) parts.push(made(gone && shown.trim() ? "del" : "span", verdict ? `claim v-${verdict}` : "", shown));
    edits.filter((edit) => edit.end === end && edit.replacement && end > start)
      .forEach((edit) => parts.push(made("ins", "", seen(edit.replacement))));
    spans.filter(({ claim }) => claim.end === end && end > start).forEach((found) => parts.push(reference(found)));
  });
  return parts;
}

function reference({ claim, verdict }) {
  const number = [...claims.keys()].indexOf(claim.id) + 1;
  const link = made("a", `ref v-${verdict}`, `${number}${SIGNS[verdict]}`);
  link.href = `#claim-${number}`;
  link.setAttribute("aria-label", `claim ${number}, ${verdict}`);
  return link;
}

// --- the claims ---

function card({ claim, verdict, support_probability: support, ...found }, place) {
  const sign = made("span", "", SIGNS[verdict]);
  sign.setAttribute("aria-hidden", "true");
  const head = made("p", "head", made("span", "number", place + 1), " ",
    made("span", `tag v-${verdict}`, sign, ` ${verdict === "pending" ? "being checked" : verdict}`));
  if (support != null) head.append(made("span", "fact", made("span", "key", "support"), ` ${Math.round(100 * support)} %`));
  if (found.conflicting) head.append(made("span", "tag conflict", "documents disagree"));
  if (found.change) head.append(made("span", "tag", found.change));
  const notes = [found.reason, found.explanation].filter(Boolean).map((note) => made("p", "quiet", seen(note)));
  const quotes = (found.citations ?? []).map((cited) => made("li", "",
    made("span", "source", seen(cited.metadata.source ?? `document ${cited.document + 1}`)),
    made("q", "", seen(cited.quote))));
  if (quotes.length) notes.push(made("p", "quiet", found.evidence));
  const item = made("li", `card claim-card v-${verdict}`, head,
    made("p", "statement", seen(claim.text)), ...notes, made("ul", "citations", ...quotes));
  item.id = `claim-${place + 1}`;
  item.tabIndex = -1;
  item.querySelectorAll(".statement, .quiet, q").forEach((each) => { each.dir = "auto"; });
  return item;
}

let waiting = false;
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    by("answer").replaceChildren(...pieces());
    by("claims").replaceChildren(...[...claims.values()].map(card));
  });
}

// --- the stream ---

async function read(response) {
  const decoder = new TextDecoder();
  let rest = "", last = "";
  for await (const bytes of chunks(response.body.getReader())) {
    const frames = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(frame);
      last = name;
      take[name]?.(JSON.parse(data));
    }
    draw();
  }
  if (last !== "end" && last !== "problem") complain("The server ended the answer early.");
}

async function* chunks(stream) {
  for (let step = await stream.read(); !step.done; step = await stream.read()) yield step.value;
}

async function ask() {
  reader?.abort();
  const mine = reader = new AbortController();
  reset();
  draw();
  by("stop").hidden = false;
  try {
    const response = await fetch("/ask", { method: "POST", body: by("question").value, signal: mine.signal });
    if (response.ok) await read(response);
    else complain(await response.text());
  } catch (error) {
    if (!mine.signal.aborted) complain("The server cannot be reached.");
  } finally {
    if (mine === reader) end();
  }
}

function end() {
  by("stop").hidden = true;
  claims.forEach((found) => {
    if (found.verdict === "pending") Object.assign(found, { verdict: "unchecked", reason: "the answer ended before the check" });
  });
  draw();
}

by("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
by("stop").addEventListener("click", () => {
  reader.abort();
  complain("You stopped the answer.");
});
by("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    by("ask").requestSubmit();
  }
});
