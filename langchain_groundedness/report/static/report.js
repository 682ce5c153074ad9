// The rows of a report: a table to sort and filter, and one row opened beside its documents.
// `el` inserts text from outside as text, never as markup.
"use strict";

const CHUNK = 100; // rows added to the table at a time
const PRINTED = 1000;
const LONGEST = 400; // characters of a text in the table
const VERDICTS = ["supported", "contradicted", "unverifiable", "unchecked"];
const SIGNS = { supported: "✓", contradicted: "✗", unverifiable: "?", unchecked: "!" };
const BADNESS = ["supported", "unverifiable", "unchecked", "contradicted"];

const at = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
const words = (name) => name.replaceAll("_", " ");
const isNumber = (value) => typeof value === "number";
const digits = (value) => value.toFixed(Math.abs(value) >= 10 ? 1 : 3);

function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child instanceof Node) made.append(child);
    else if (child !== null && child !== undefined && child !== false) made.append(String(child));
  }
  return made;
}

function say(text) {
  at("live").textContent = text;
}

// --- the data ---

const data = JSON.parse(at("data").textContent);
const blocks = {};

function line(block, place) {
  blocks[block] ??= at(block).textContent.split("\n");
  return JSON.parse(blocks[block][place]);
}

function change(row, metric) {
  if (!row.before) return "new";
  const [was, is] = [row.before[metric], row.scores[metric]];
  if (isNumber(was) && isNumber(is)) return is > was ? "higher" : is < was ? "lower" : "same";
  return isNumber(was) ? "lost" : null;
}

const difference = (row, metric) =>
  ["higher", "lower", "same"].includes(change(row, metric)) ? row.scores[metric] - row.before[metric] : null;

// --- the table ---

let order = data.rows.map((_, place) => place); // rows listed, as indices into the data
let listed = 0; // how many of them are in the table
let sorted = null; // {by, down}

const collator = new Intl.Collator(undefined, { numeric: true });
const VALUES = {
  id: (row) => row.id,
  what: (row) => row.question || row.answer || row.id,
  verdict: (row) => row.verdict || null,
};

function valueOf(row, by) {
  if (by in VALUES) return VALUES[by](row);
  const [kind, metric] = by.split(" ");
  const value = kind === "change" ? difference(row, metric) : row.scores[metric];
  return isNumber(value) ? value : null;
}

function sort() {
  if (!sorted) return;
  const values = new Map(order.map((place) => [place, valueOf(data.rows[place], sorted.by)]));
  const way = sorted.down ? -1 : 1;
  order.sort((one, other) => {
    const [a, b] = [values.get(one), values.get(other)];
    if (a === null || b === null) return (a === null) - (b === null) || one - other; // always last
    return way * (isNumber(a) ? a - b : collator.compare(a, b)) || one - other;
  });
}

function filters() {
  const read = (id) => at(id).value;
  const metric = read("f-metric");
  return {
    text: read("f-text").trim().toLowerCase(),
    metrics: data.metrics.map((_, place) => place).filter((n) => !metric || data.metrics[n].key === metric),
    status: read("f-status"),
    most: read("f-most") === "" ? null : Number(read("f-most")),
    verdict: read("f-verdict"),
    change: read("f-change"),
    group: groups.get(read("f-group")),
  };
}

const statusOf = (score) => (isNumber(score) ? "scored" : score);

function matches(row, wanted) {
  if (wanted.text) {
    row.hay ??= [row.id, row.question, row.answer].join("\n").toLowerCase();
    if (!row.hay.includes(wanted.text)) return false;
  }
  if (wanted.verdict && row.verdict !== wanted.verdict) return false;
  if (wanted.group) {
    const [column, value] = wanted.group;
    if (row.groups[column] !== value) return false;
  }
  if (!wanted.status && wanted.most === null && !wanted.change) return true;
  return wanted.metrics.some(
    (metric) =>
      (!wanted.status || statusOf(row.scores[metric]) === wanted.status) &&
      (wanted.most === null || (isNumber(row.scores[metric]) && row.scores[metric] <= wanted.most)) &&
      (!wanted.change || change(row, metric) === wanted.change),
  );
}

function list() {
  const wanted = filters();
  order = data.rows.map((_, place) => place).filter((place) => matches(data.rows[place], wanted));
  sort();
  remember();
  listed = 0;
  at("table").tBodies[0].replaceChildren();
  more();
  const [now, whole] = [order.length, data.rows.length].map((count) => count.toLocaleString("en"));
  at("count").textContent = order.length === data.rows.length ? `${whole} rows` : `${now} of ${whole} rows`;
  at("none").hidden = order.length > 0;
  at("scroller").hidden = order.length === 0;
}

function more(count = CHUNK) {
  const next = order.slice(listed, listed + count);
  at("table").tBodies[0].append(...next.map(tableRow));
  listed += next.length;
  const left = order.length - listed;
  at("more").hidden = left <= 0;
  at("more").firstChild.textContent = `Show ${Math.min(CHUNK, left)} more of ${left.toLocaleString("en")}`;
}

function tableRow(place) {
  const row = data.rows[place];
  const title = row.question || row.answer || row.id;
  return el("tr", { "data-place": place },
    el("td", { class: "id" }, row.id),
    el("td", { class: "what" },
      el("a", { href: address(`row-${place + 1}`), dir: "auto" }, short(title) || "(no text)"),
      row.question && row.answer ? el("p", { class: "quiet", dir: "auto" }, short(row.answer)) : null),
    el("td", null, row.verdict ? answerTag(row.verdict) : null, row.claims ? counts(row.claims) : null),
    data.metrics.map((metric, n) =>
      el("td", { class: "score", "data-metric": metric.key }, score(row.scores[n], metric), delta(row, n))));
}

function answerTag(verdict) {
  return el("span", { class: `tag a-${verdict}` }, words(verdict));
}

function verdictTag(verdict) {
  return el("span", { class: `tag v-${verdict}` }, el("span", { "aria-hidden": "true" }, SIGNS[verdict]), " ", verdict);
}

function counts(claims) {
  const there = VERDICTS.map((verdict, n) => [verdict, claims[n]]).filter(([, count]) => count);
  return el("span", { class: "counts" },
    there.map(([verdict, count]) =>
      el("span", { class: `v-${verdict}`, title: `${count} ${verdict}` },
        SIGNS[verdict], el("span", { class: "hidden" }, ` ${verdict}:`), ` ${count}`)));
}

function score(value, metric) {
  if (value === null) return el("span", { class: "quiet" }, "–");
  if (!isNumber(value)) {
    return el("span", { class: `tag ${value}` }, value === "failed" ? "! failed" : "– skipped");
  }
  const [low, high] = metric.bounds;
  const filled = el("i");
  filled.style.width = `${(100 * (value - low)) / (high - low)}%`;
  return [digits(value), el("span", { class: "bar", "aria-hidden": "true" }, filled)];
}

function delta(row, metric) {
  if (!data.compared) return null;
  const kind = change(row, metric);
  const by = difference(row, metric);
  if (kind === "new") return el("span", { class: "delta quiet" }, "only here");
  if (kind === "lost") return el("span", { class: "delta lower" }, `! was ${digits(row.before[metric])}`);
  if (!by) return null;
  return el("span", { class: `delta ${kind}` }, `${by > 0 ? "▲ +" : "▼ −"}${digits(Math.abs(by))}`);
}

function makeHead() {
  const head = (by, name, label) => el("button", { type: "button", "data-by": by, "aria-label": label }, name);
  const cells = [["id", "Row"], ["what", "Question and answer"], ["verdict", "Verdict"]].map(([by, name]) =>
    el("th", { scope: "col" }, head(by, name)));
  const metrics = data.metrics.map(({ key }, n) =>
    el("th", { scope: "col", class: "score" }, head(`score ${n}`, key),
      data.compared ? [" ", head(`change ${n}`, "Δ", `Change of ${key}`)] : null));
  at("table").tHead.replaceChildren(el("tr", null, cells, metrics));
}

function sortBy(button) {
  const by = button.dataset.by;
  const again = sorted && sorted.by === by;
  sorted = again && sorted.down ? null : { by, down: Boolean(again) };
  const way = showOrder();
  list();
  const name = button.getAttribute("aria-label") || button.textContent;
  say(way ? `Sorted by ${name}, ${way}` : "In the order of the data set");
}

function showOrder() {
  all("#table thead th").forEach((cell) => cell.removeAttribute("aria-sort"));
  all("#table thead button").forEach((each) => each.removeAttribute("data-sorted"));
  const button = sorted && all("#table thead button").find((each) => each.dataset.by === sorted.by);
  if (!button) return null;
  const way = sorted.down ? "descending" : "ascending";
  button.closest("th").setAttribute("aria-sort", way);
  button.dataset.sorted = way;
  return way;
}

// --- filters and order, in the address ---

const FILTERS = ["text", "metric", "status", "most", "verdict", "change", "group"];
const groups = new Map(); // column and value by the name of a slice
let query = "";

const address = (name) => `#${name}${query && `?${query}`}`;

function remember() {
  const given = FILTERS.map((name) => [name, at(`f-${name}`).value]);
  if (sorted) given.push(["sort", sorted.by], ["down", sorted.down ? "yes" : ""]);
  query = String(new URLSearchParams(given.filter(([, value]) => value)));
  if (!location.hash.startsWith("#row-") && (query || location.hash.includes("?"))) history.replaceState(null, "", address("rows"));
}

function restore(wanted) {
  const given = new URLSearchParams(wanted);
  FILTERS.forEach((name) => {
    at(`f-${name}`).value = given.get(name) || "";
  });
  sorted = given.has("sort") ? { by: given.get("sort"), down: given.has("down") } : null;
  if (!showOrder()) sorted = null;
  list();
}

function makeFilters() {
  const option = (value, text) => el("option", { value }, text);
  at("f-metric").append(...data.metrics.map(({ key }) => option(key, key)));
  const verdicts = [...new Set(data.rows.map((row) => row.verdict).filter(Boolean))].sort();
  at("f-verdict").append(...verdicts.map((verdict) => option(verdict, words(verdict))));
  at("f-verdict").closest("div").hidden = verdicts.length === 0;
  at("f-group").append(...data.slices.map((slice, column) => {
    const group = el("optgroup", { label: slice.column });
    group.append(...slice.values.map((value) => {
      const name = `${slice.column}=${value}`;
      groups.set(name, [column, value]);
      return option(name, value);
    }));
    return group;
  }));
  at("group-field").hidden = data.slices.length === 0;
  at("change-field").hidden = !data.compared;
  at("filters").hidden = false;
  at("no-script").hidden = true;
}

function showOnly(field, value) {
  for (const each of at("filters").elements) if (each.id) each.value = "";
  at(field).value = value;
  list();
  at("rows").scrollIntoView();
  at(field).focus({ preventScroll: true });
}

// --- one row ---

let open = null; // its place in the data
let scrolled = null; // scroll position of the table
let claim = null; // the card selected last
let cited = -1; // which of its citations is shown
let cameFrom = null; // where Escape returns to
let cites = []; // citations of the verdicts shown
const overviewTitle = document.title;

function cut(text, spans) {
  const borders = [...new Set([0, text.length, ...spans.flat()])].sort((a, b) => a - b);
  return borders.slice(1).map((end, n) => {
    const start = borders[n];
    const inside = spans.map((_, k) => k).filter((k) => spans[k][0] <= start && end <= spans[k][1]);
    return { text: text.slice(start, end), inside, ends: inside.filter((k) => spans[k][1] === end) };
  });
}

function showRow(place) {
  if (open === null) scrolled = window.scrollY;
  open = place;
  const row = data.rows[place];
  const more = line("details", place);
  at("overview").hidden = true;
  at("row").hidden = false;
  document.body.className = "item";
  document.title = `${short(row.question || row.id)} · ${overviewTitle}`;
  fillRow(row, more, 0);
  window.scrollTo({ top: 0, behavior: "instant" });
  all("#row h1")[0].focus({ preventScroll: true });
}

function fillRow(row, more, choice) {
  const result = (more.results || [])[choice];
  const places = result ? result.documents : more.documents || [];
  const documents = places.map((place) => line("documents", place));
  claim = null;
  cited = -1;
  cameFrom = null;
  cites = [];
  if (result) {
    result.claims.forEach((found, n) => found.citations.forEach((citation) => cites.push({ ...citation, of: n })));
  }
  at("row").replaceChildren(
    trail(),
    el("h1", { tabindex: "-1", dir: "auto" }, row.question || row.id),
    facts(row, more, result),
    el("div", { class: "columns" },
      el("div", { class: "left" },
        more.results && more.results.length > 1 ? choices(row, more, choice) : null,
        answerCard(row, more, result),
        more.before ? beforeCard(more.before) : null,
        more.reference === undefined ? null : textCard("Reference", more.reference),
        scoresCard(row, more),
        result ? claimList(result, documents) : null,
        more.metadata.length ? described("Other columns", more.metadata) : null),
      documentPane(documents, more, result)));
}

function trail() {
  const here = order.indexOf(open);
  const step = (by, name, key) => {
    const place = order[here + by];
    return here < 0 || place === undefined ? null : el("a", { href: address(`row-${place + 1}`), "data-key": key }, name);
  };
  return el("nav", { class: "trail", "aria-label": "Rows" },
    el("a", { href: address("rows") }, "← All rows"),
    el("span", null, step(-1, "Previous", "p"), step(1, "Next", "n")));
}

function facts(row, more, result) {
  const fact = (name, value) =>
    value === undefined || value === null ? null
      : el("span", { class: "fact" }, el("span", { class: "key" }, name), value);
  return el("p", { class: "meta" },
    result ? answerTag(result.verdict) : null,
    result && isNumber(result.trust) ? fact("trust score", result.trust.toFixed(2)) : null,
    fact("row", row.id), fact("line", more.line), fact("label", more.label),
    isNumber(more.seconds) ? fact("took", `${+more.seconds.toPrecision(2)} s`) : null);
}

function choices(row, more, choice) {
  return el("div", { class: "choice", role: "group", "aria-label": "Verdicts of which metric" },
    more.results.map(({ key }, n) => {
      const button = el("button", { type: "button", "aria-pressed": String(n === choice) }, key);
      button.addEventListener("click", () => {
        fillRow(row, more, n);
        all("#row .choice button")[n].focus();
      });
      return button;
    }));
}

function textCard(name, text) {
  return el("section", { class: "card" }, el("h2", null, name), el("p", { class: "text", dir: "auto" }, text));
}

function described(name, pairs) {
  return el("details", { class: "facts" }, el("summary", null, name),
    el("dl", null, pairs.map(([key, value]) =>
      el("div", null, el("dt", null, key), el("dd", { dir: "auto" }, value)))));
}

function answerCard(row, more, result) {
  const isOther = result && result.answer !== row.answer;
  const card = el("section", { class: "card" }, el("h2", null, isOther ? "Text that was checked" : "Answer"));
  const text = result ? result.answer : row.answer;
  if (text === undefined) {
    card.append(el("p", { class: "quiet" }, "The row has no answer."));
    return card;
  }
  card.append(marked(text, result ? result.claims : [], true));
  if (result && result.claims.length) card.append(legend());
  if (result && result.changed !== undefined) {
    card.append(el("h3", null, "Corrected answer"), el("p", { class: "text", dir: "auto" }, result.changed));
  }
  if (!result) card.append(el("p", { class: "quiet" }, "No claim in this answer was checked."));
  return card;
}

function marked(text, claims, isOpen) {
  const located = claims.map((found, n) => ({ ...found, n })).filter((found) => found.span);
  const pieces = cut(text, located.map((found) => found.span));
  const worst = (inside) =>
    inside.map((k) => located[k].verdict).sort((a, b) => BADNESS.indexOf(b) - BADNESS.indexOf(a))[0];
  return el("p", { class: isOpen ? "text answer" : "text", dir: "auto" },
    pieces.map(({ text: piece, inside, ends }) => [
      inside.length
        ? el("span", { class: `claim v-${worst(inside)}`, "data-claims": inside.map((k) => located[k].n).join(" ") }, piece)
        : piece,
      ends.map((k) => ref(located[k], isOpen)),
    ]).flat(2));
}

function ref({ n, verdict }, isOpen) {
  const parts = [`${n + 1}`, el("span", { "aria-hidden": "true" }, SIGNS[verdict])];
  if (!isOpen) return el("span", { class: `ref v-${verdict}`, title: verdict }, parts);
  return el("button", { type: "button", class: `ref v-${verdict}`, "data-claim": n, "aria-label": `Claim ${n + 1}: ${verdict}` }, parts);
}

function legend() {
  return el("ul", { class: "legend", "aria-label": "Verdicts" },
    VERDICTS.map((verdict) =>
      el("li", null, el("span", { "aria-hidden": "true" }, SIGNS[verdict]), " ", el("span", { class: `claim v-${verdict}` }, verdict))));
}

function scoresCard(row, more) {
  return el("section", { class: "card" }, el("h2", null, "Scores"),
    el("ul", { class: "scores" }, more.scores.map((found) => {
      const n = data.metrics.findIndex((metric) => metric.key === found.key);
      return el("li", null,
        el("p", { class: "head" }, el("span", { class: "number" }, found.key),
          isNumber(found.score) ? el("b", null, digits(found.score)) : score(found.score, data.metrics[n]), delta(row, n)),
        found.reason ? el("p", { class: "quiet", dir: "auto" }, found.reason) : null,
        found.comment ? el("p", { class: "quiet", dir: "auto" }, found.comment) : null,
        found.details && Object.keys(found.details).length
          ? el("details", null, el("summary", null, "Details"), el("pre", { dir: "auto" }, JSON.stringify(found.details, null, 2)))
          : null);
    })));
}

function beforeCard(before) {
  const card = el("section", { class: "card" }, el("h2", null, "In the other run"));
  if (before.answer !== undefined) card.append(marked(before.answer, before.result && before.result.answer === before.answer ? before.result.claims : [], false));
  card.append(el("p", { class: "meta" }, before.scores.map((found) =>
    el("span", { class: "fact" }, el("span", { class: "key" }, found.key), isNumber(found.score) ? digits(found.score) : found.score))));
  return card;
}

function knownName(found) {
  const known = Object.fromEntries(found.metadata);
  return known.title || known.source || found.id;
}

const nameOf = (found, place) => knownName(found) || `Document ${place + 1}`;

function claimList(result, documents) {
  return el("section", { "aria-labelledby": "h-claims" },
    el("h2", { id: "h-claims" }, "Claims ", el("span", { class: "count" }, result.claims.length)),
    result.claims.length ? null : el("p", { class: "quiet" }, "No claim was found in this text."),
    el("ol", { class: "claims" }, result.claims.map((found, n) => claimCard(found, n, documents))));
}

function claimCard(found, n, documents) {
  const own = cites.map((citation, k) => ({ ...citation, k })).filter((citation) => citation.of === n);
  const note = (text, quiet = "quiet") => (text ? el("p", { class: quiet, dir: "auto" }, text) : null);
  return el("li", { class: `card claim-card v-${found.verdict}`, id: `claim-${n}`, tabindex: "-1", "data-n": n, "data-verdict": found.verdict },
    el("p", { class: "head" }, el("span", { class: "number" }, n + 1), verdictTag(found.verdict),
      isNumber(found.probability) ? el("span", { class: "fact" }, el("span", { class: "key" }, "support"), `${Math.round(100 * found.probability)} %`) : null,
      found.conflicting ? el("span", { class: "tag conflict" }, "documents disagree") : null,
      found.span ? null : el("span", { class: "fact quiet" }, "not marked in the answer")),
    el("p", { class: "statement", dir: "auto" }, found.text),
    note(found.reason), note(found.explanation),
    found.correction ? el("p", { dir: "auto" }, el("span", { class: "key" }, found.correction_words), found.correction) : null,
    note(found.evidence_words),
    own.length ? el("ul", { class: "citations", "aria-label": `Citations of claim ${n + 1}` }, own.map((citation) => citationItem(citation, documents))) : null);
}

function citationItem(citation, documents) {
  const from = documents[citation.document];
  const source = from ? nameOf(from, citation.document) : `Document ${citation.document + 1}`;
  const quote = citation.span ? from.text.slice(...citation.span) : citation.quote;
  const text = `“${short(quote)}”`;
  return el("li", null, el("span", { class: "source" }, source),
    citation.span ? el("button", { type: "button", class: "link", "data-cite": citation.k, dir: "auto" }, text) : el("q", { dir: "auto" }, short(quote)));
}

function documentPane(documents, more, result) {
  const isKnown = result || more.documents !== undefined;
  const articles = documents.map((found, place) => {
    const own = cites.map((citation, k) => ({ ...citation, k })).filter((c) => c.span && c.document === place);
    const pieces = cut(found.text, own.map((citation) => citation.span));
    const name = nameOf(found, place);
    const rest = found.metadata.filter(([, value]) => value !== name);
    return el("article", { class: "document", "aria-labelledby": `h-doc-${place}` },
      el("h3", { id: `h-doc-${place}` }, knownName(found) ? `${place + 1} ` : null, name),
      rest.length ? el("dl", { class: "details" }, rest.map(([key, value]) => el("div", null, el("dt", null, key), el("dd", { dir: "auto" }, short(value))))) : null,
      el("p", { class: "text", dir: "auto" }, pieces.map(({ text, inside }) =>
        inside.length ? el("mark", { "data-cited": inside.map((k) => own[k].k).join(" "), tabindex: "-1" }, text) : text)));
  });
  const none = isKnown ? "There are no documents." : "The documents were not recorded.";
  return el("aside", { class: "right", "aria-labelledby": "h-documents" },
    el("h2", { id: "h-documents" }, "Documents ", el("span", { class: "count" }, documents.length)),
    el("div", { class: "pane", id: "pane", tabindex: "0", role: "region", "aria-labelledby": "h-documents" },
      articles.length ? articles : el("p", { class: "document quiet" }, none)));
}

// --- claims and citations ---

const has = (listed, word) => (listed || "").split(" ").includes(String(word));

function choose(card, { focus = true } = {}) {
  if (card !== claim) cited = -1;
  claim = card;
  all("#row .answer .claim").forEach((span) => span.classList.toggle("now", has(span.dataset.claims, card.dataset.n)));
  if (focus) card.focus();
  say(`Claim ${Number(card.dataset.n) + 1} of ${all(".claim-card").length}: ${card.dataset.verdict}`);
}

function stepClaim(by) {
  const cards = all(".claim-card");
  if (!cards.length) return;
  const now = cards.indexOf(claim);
  const next = now < 0 ? (by > 0 ? 0 : cards.length - 1) : now + by;
  if (cards[next]) choose(cards[next]);
}

function show(place, from) {
  const marks = all("mark").filter((mark) => has(mark.dataset.cited, place));
  if (!marks.length) return;
  all("mark.now").forEach((mark) => mark.classList.remove("now"));
  marks.forEach((mark) => mark.classList.add("now"));
  cameFrom = from;
  marks[0].focus({ preventScroll: true });
  marks[0].scrollIntoView({ block: "center" });
  backButton();
  const title = marks[0].closest(".document").querySelector("h3").textContent.trim();
  say(`Shown in document ${title}. Press Escape to return to the claim.`);
}

function nextCitation(from) {
  const places = cites.map((_, k) => k).filter((k) => cites[k].span && cites[k].of === Number(claim.dataset.n));
  if (!places.length) {
    all("mark.now").forEach((mark) => mark.classList.remove("now"));
    say("This claim has no citation that can be shown.");
    return false;
  }
  cited = (cited + 1) % places.length;
  show(places[cited], from);
  return true;
}

function pick(number, from) {
  choose(at(`claim-${number}`), { focus: false });
  cited = -1;
  if (!nextCitation(from)) choose(at(`claim-${number}`));
}

function backButton() {
  all(".to-claim").forEach((button) => button.remove());
  if (!cameFrom) return;
  const button = el("button", { type: "button", class: "to-claim main-action" }, "↑ Back to the claim");
  button.addEventListener("click", back);
  at("row").append(button);
}

function back() {
  if (!cameFrom) return false;
  cameFrom.focus();
  cameFrom.scrollIntoView({ block: "nearest" });
  cameFrom = null;
  backButton();
  return true;
}

// --- navigation ---

function showOverview(target) {
  if (open !== null) {
    const was = open;
    open = null;
    at("row").hidden = true;
    at("row").replaceChildren();
    at("overview").hidden = false;
    document.body.className = "overview";
    document.title = overviewTitle;
    const place = order.indexOf(was);
    if (place >= listed) more(Math.ceil((place + 1 - listed) / CHUNK) * CHUNK);
    if (!target || target === "rows") {
      const link = all(`#table tr[data-place="${was}"] a`)[0];
      if (scrolled !== null) window.scrollTo({ top: scrolled, behavior: "instant" });
      if (link) link.focus({ preventScroll: scrolled !== null });
      return;
    }
  }
  if (target && at(target)) at(target).scrollIntoView();
}

function route() {
  const [name, wanted] = location.hash.slice(1).split("?");
  if (wanted !== undefined && wanted !== query) restore(wanted);
  const found = /^row-(\d+)$/.exec(name);
  const place = found ? Number(found[1]) - 1 : -1;
  if (data.rows[place]) showRow(place);
  else showOverview(name);
}

// --- mouse and keys ---

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  const span = event.target.closest(".answer .claim");
  if (button && button.dataset.by) sortBy(button);
  else if (button && button.dataset.column) showOnly("f-group", `${button.dataset.column}=${button.dataset.value}`);
  else if (button && button.dataset.status) showOnly("f-status", button.dataset.status);
  else if (button && button.dataset.claim) pick(button.dataset.claim, button);
  else if (button && button.dataset.cite) {
    choose(button.closest(".claim-card"), { focus: false });
    show(Number(button.dataset.cite), button);
  } else if (span && !String(getSelection())) {
    const number = span.dataset.claims.split(" ")[0];
    pick(number, all(`.answer .ref[data-claim="${number}"]`)[0]);
  }
});

function stepRow(by) {
  const links = all("#table tbody a");
  const now = links.indexOf(document.activeElement);
  const next = links[now < 0 ? (by > 0 ? 0 : links.length - 1) : now + by];
  if (next) next.focus();
}

let on = true;
try {
  on = localStorage.getItem("shortcuts") !== "off";
} catch { /* a browser that keeps nothing */ }

function makeSwitch() {
  const box = at("keys");
  box.checked = on;
  box.closest(".switch").hidden = false;
  box.addEventListener("change", () => {
    on = box.checked;
    try {
      localStorage.setItem("shortcuts", on ? "on" : "off");
    } catch { /* as above */ }
  });
}

function obey(key) {
  if (key === "j" || key === "k") (open === null ? stepRow : stepClaim)(key === "j" ? 1 : -1);
  else if (key === "c" && open !== null) {
    if (!claim) stepClaim(1);
    if (claim) nextCitation(claim);
  } else if ((key === "n" || key === "p") && open !== null) all(`#row a[data-key="${key}"]`).forEach((link) => link.click());
  else if (key === "/") {
    if (open !== null) location.hash = address("rows");
    else at("f-text").focus();
  } else if (key === "?") {
    at("shortcuts").open = true;
    all("#shortcuts summary")[0].focus();
  } else return false;
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("select, input:not([type=checkbox])")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "Escape" && open !== null) {
    if (!back()) location.hash = address("rows");
    return;
  }
  const card = event.target.closest(".claim-card");
  if (event.key === "Enter" && card && event.target === card) {
    pick(card.dataset.n, card);
    return;
  }
  if (on && event.key.length === 1 && obey(event.key)) event.preventDefault();
});

let waiting = 0;
at("filters").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(list, 80);
});
at("filters").addEventListener("reset", () => setTimeout(list));
at("filters").addEventListener("submit", (event) => event.preventDefault());
at("more").addEventListener("click", () => {
  const first = listed;
  more();
  at("table").tBodies[0].rows[first].querySelector("a").focus();
});
addEventListener("beforeprint", () => more(Math.max(0, PRINTED - listed)));
addEventListener("hashchange", route);

makeHead();
makeFilters();
makeSwitch();
restore(location.hash.split("?")[1] || "");
route();
