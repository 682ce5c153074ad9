// Keyboard shortcuts, and highlighting of citations. Without JavaScript, plain links do the same.
"use strict";

const live = document.getElementById("live");
const all = (selector) => [...document.querySelectorAll(selector)];
const has = (list, word) => (list || "").split(" ").includes(word);

function say(text) {
  live.className = "hidden";
  live.textContent = text;
}

// Screen readers announce only changes, so text present at load is inserted again.
if (live.textContent) {
  const first = live.textContent;
  live.textContent = "\u00a0";
  setTimeout(() => { if (live.textContent === "\u00a0") live.textContent = first; }, 100);
}

// --- claims and citations ---

let claim = null; // the card selected last
let cited = -1; // which of its citations is shown
let cameFrom = null; // where Escape returns to

function choose(card, { focus = true } = {}) {
  if (card !== claim) cited = -1;
  claim = card;
  const { number, verdict } = card.dataset;
  all(".answer .claim").forEach((span) => {
    span.classList.toggle("now", has(span.dataset.claims, number));
  });
  if (focus) card.focus();
  say(`Claim ${number} of ${all(".claim-card").length}: ${verdict}`);
}

function step(by) {
  const cards = all(".claim-card");
  if (!cards.length) return;
  const now = cards.indexOf(claim);
  const next = now < 0 ? (by > 0 ? 0 : cards.length - 1) : now + by;
  if (cards[next]) choose(cards[next]);
}

function show(link) {
  const marks = all("mark").filter((mark) => has(mark.dataset.cited, link.dataset.cite));
  if (!marks.length) return false;
  all("mark.now").forEach((mark) => mark.classList.remove("now"));
  marks.forEach((mark) => mark.classList.add("now"));
  cameFrom = link;
  marks[0].focus({ preventScroll: true });
  marks[0].scrollIntoView({ block: "center" });
  const title = marks[0].closest(".document").querySelector("h3").textContent.trim();
  say(`Shown in document ${title}. Press Escape to return to the claim.`);
  return true;
}

function nextCitation() {
  if (!claim) step(1);
  const links = claim ? [...claim.querySelectorAll("a[data-cite]")] : [];
  if (!links.length) {
    say("This claim has no citation that can be shown.");
    return;
  }
  cited = (cited + 1) % links.length;
  show(links[cited]);
}

function back() {
  const home = cameFrom || claim;
  cameFrom = null;
  if (home) home.focus();
}

// --- marks of claims ---

const radios = all("[data-mark]");

function counted() {
  document.getElementById("marked").textContent = radios.filter((radio) => radio.checked).length;
}

function markClaim(key) {
  if (!claim) step(1);
  const radio = claim && claim.querySelector(`[data-mark="${key}"]`);
  if (!radio) return;
  radio.checked = !radio.checked;
  counted();
  say(`Claim ${claim.dataset.number} marked ${radio.checked ? radio.value : "neither right nor wrong"}`);
}

radios.forEach((radio) => radio.addEventListener("change", counted));
document.addEventListener("focusin", ({ target }) => {
  const card = target.closest(".claim-card");
  if (card && card !== claim) choose(card, { focus: false });
});

// --- undo ---

const undo = document.getElementById("undo");
if (undo) {
  const until = Date.now() + 1000 * undo.dataset.seconds; // tabs in the background tick rarely
  const ticking = setInterval(() => {
    const left = Math.round((until - Date.now()) / 1000);
    document.getElementById("left").textContent = left;
    if (left > 0) return;
    clearInterval(ticking);
    undo.remove();
  }, 1000);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-cite]");
  if (link) {
    const card = link.closest(".claim-card");
    choose(card, { focus: false });
    cited = [...card.querySelectorAll("a[data-cite]")].indexOf(link);
    if (show(link)) event.preventDefault();
    return;
  }
  const ref = event.target.closest("a.ref");
  const span = event.target.closest(".answer .claim");
  const number = ref ? ref.dataset.claim : span && span.dataset.claims.split(" ")[0];
  const card = number && document.getElementById(`claim-${number}`);
  if (card && !String(getSelection())) {
    event.preventDefault();
    choose(card);
  }
});

// --- the form ---

const form = document.getElementById("decide");
const edit = document.getElementById("edit");
const texts = form ? [...form.querySelectorAll("textarea")] : [];
const written = () =>
  texts.some((text) => text.value !== text.defaultValue) || radios.some((radio) => radio.checked !== radio.defaultChecked);
let sent = false;

if (form) {
  form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
  });
  let unfolded = edit.open; // browsers fire `toggle` for an initially open one, too
  edit.addEventListener("toggle", () => {
    if (edit.open && !unfolded) document.getElementById("edited").focus();
    unfolded = edit.open;
  });
  document.getElementById("edited").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit(form.querySelector(".edit"));
    }
  });
  addEventListener("beforeunload", (event) => {
    if (!sent && written()) event.preventDefault();
  });
  addEventListener("pageshow", () => { sent = false; });
}

// --- the queue ---

function stepRecord(by) {
  const links = all("a[data-record]");
  const now = links.indexOf(document.activeElement);
  const next = links[now < 0 ? (by > 0 ? 0 : links.length - 1) : now + by];
  if (next) next.focus();
}

// --- shortcuts ---

const box = document.getElementById("keys");
let on = true;
try {
  on = localStorage.getItem("shortcuts") !== "off";
} catch { /* storage is disabled */ }
if (box) {
  box.checked = on;
  box.closest(".switch").hidden = false;
  box.addEventListener("change", () => {
    on = box.checked;
    try {
      localStorage.setItem("shortcuts", on ? "on" : "off");
    } catch { /* as above */ }
  });
}

function keyed(key) {
  const found = all(`[data-key="${key}"]`).pop();
  if (!found) return false;
  if (key === "n" || key === "q") found.click();
  else if (key === "e") {
    edit.open = true;
    document.getElementById("edited").focus();
  } else found.focus();
  return true;
}

function obey(key) {
  const records = document.body.classList.contains("queue");
  if (key === "j" || key === "k") (records ? stepRecord : step)(key === "j" ? 1 : -1);
  else if (key === "c" && !records) nextCitation();
  else if ((key === "r" || key === "w") && radios.length) markClaim(key);
  else if (key === "m" && form) document.getElementById("note").focus();
  else if (key === "?") {
    const help = document.getElementById("shortcuts");
    if (!help) return false;
    help.open = true;
    help.querySelector("summary").focus();
  } else return "aexunq/".includes(key) && keyed(key);
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("textarea, select, input:not([type=checkbox], [type=radio])")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "Escape") {
    back();
    return;
  }
  if (on && event.key.length === 1 && obey(event.key)) event.preventDefault();
});
