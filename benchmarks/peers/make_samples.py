"""Deterministic benchmark samples: `python make_samples.py OUT.json [--profile short|long]`.

Every sample has a question, documents, an answer whose sentences are its claims,
and for each claim a gold label, the document that settles it and the verbatim
evidence sentence. Text is invented, ASCII, and free of quotes so that a claim is
found by plain substring search in any peer's prompt, however the peer escapes it.
"""

import argparse
import json
import random
from pathlib import Path

NAMES = (
    "Arvelo Brukma Cintara Dovrel Esquiva Fjordane Galbrek Hestova Ilmarin Jorvex "
    "Kestrila Lumbrek Mossavia Nordpell Ostrava-Quill Pellucid Quorvan Rendilly Sabrona Tavrik"
).split()
KINDS = "Pumps Looms Lamps Ovens Clocks Boats Tiles Cables Scales Valves".split()
CITIES = "Lindholm Varga Ostend Calder Mirano Tolva Brask Elmsford Pavilly Ruscova".split()
PEOPLE = "Ines Moreau,Olaf Brandt,Petra Novak,Tomas Lund,Mira Castell,Jonas Weir".split(",")
FILLER = (
    "Suppliers are reviewed every quarter and the findings are kept by the purchasing office.",
    "Visitors sign in at the front desk and wear a badge while they are on the premises.",
    "The canteen was refurbished and now serves a hot meal at noon and in the evening.",
    "Training for new staff covers safety, record keeping and the handling of complaints.",
    "Minutes of the monthly meeting are circulated to all departments within a week.",
    "The archive keeps paper records in boxes that are labelled by year and by office.",
    "Questions about this text can be sent to the communications office during the week.",
    "Deliveries arrive at the north gate, where a clerk checks the papers against the order.",
    "A small library on the second floor lends technical journals to members of staff.",
    "Energy use is read from the meters each month and compared with the year before.",
    "The committee thanked the volunteers who had prepared the exhibition in the lobby.",
    "Maintenance of the lifts is carried out by an outside firm under a fixed contract.",
)


def pad(rng, sentences, words):
    """Return a text of about `words` words that keeps `sentences` in order."""
    out = list(sentences)
    while sum(len(s.split()) for s in out) < words:
        out.insert(rng.randrange(0, len(out) + 1), rng.choice(FILLER))
    return " ".join(out)


def make_sample(i, profile):  # noqa: C901  (reads top-down)
    rng = random.Random(1000 + i)
    name = f"{NAMES[i]} {rng.choice(KINDS)}"
    year, moved, yr = rng.randint(1921, 1979), rng.randint(1985, 2015), rng.randint(2019, 2024)
    city, city2, city3 = rng.sample(CITIES, 3)
    staff, rev, cap = rng.randint(120, 4800), rng.randint(14, 460), rng.randint(4, 90)
    warranty, days, prod = (
        rng.randint(2, 5),
        rng.choice([14, 21, 30, 45]),
        f"model {NAMES[i][0]}{rng.randint(10, 99)}",
    )
    ev = {
        "founded": f"Established in {year} by {rng.choice(PEOPLE)}, {name} started as a "
        f"workshop in {city}.",
        "hq": f"The head office of {name} was transferred to {city2} in {moved}.",
        "staff": f"At the close of {yr} the payroll of {name} counted {staff} people.",
        "rev": f"For {yr} the accounts of {name} show sales of {rev} million euros.",
        "warranty": f"Each {prod} sold by {name} holds {cap} litres and carries a warranty of "
        f"{warranty} years.",
        "days": f"Unused goods bought from {name} can be sent back up to {days} days after "
        f"delivery.",
    }
    good = {
        "founded": f"{name} was founded in {year}.",
        "hq": f"{name} has its headquarters in {city2}.",
        "staff": f"{name} employed {staff} people at the end of {yr}.",
        "rev": f"{name} reported sales of {rev} million euros for {yr}.",
        "warranty": f"{name} gives a {warranty}-year warranty on the {prod}.",
        "days": f"{name} accepts returns of unused goods within {days} days.",
    }
    wrong = {
        "founded": f"{name} was founded in {year + 11}.",
        "hq": f"{name} has its headquarters in {city3}.",
        "staff": f"{name} employed {staff + 730} people at the end of {yr}.",
        "rev": f"{name} reported sales of {rev * 2 + 5} million euros for {yr}.",
        "warranty": f"{name} gives a {warranty + 4}-year warranty on the {prod}.",
        "days": f"{name} accepts returns of unused goods within {days + 37} days.",
    }
    made_up = [
        f"{name} plans to open a second plant in {city3}.",
        f"{name} won the Continental Design Award in {yr}.",
        f"{name} is the largest employer in {city2}.",
    ]
    keys, n = list(ev), 3 + i % 4
    rng.shuffle(keys)
    claims = []
    for j in range(n):
        k = keys[j]
        roll = 0.0 if i % 5 == 0 else rng.random()
        if roll < 0.65:
            claims.append({"text": good[k], "label": "supported", "key": k})
        elif roll < 0.82:
            claims.append({"text": wrong[k], "label": "contradicted", "key": k})
        else:
            claims.append({"text": made_up[j % 3], "label": "unsupported", "key": None})
    seen, uniq = set(), []
    for c in claims:
        if c["text"] not in seen:
            seen.add(c["text"])
            uniq.append(c)
    n_docs, words = (5, 120) if profile == "short" else (40, 250)
    groups = [["founded", "hq"], ["staff", "rev"], ["warranty"], ["days"]]
    # the documents that matter sit at the start, the dead centre and the end
    slots = [0, 1, 2, 3] if profile == "short" else [0, n_docs // 2 - 1, n_docs // 2, n_docs - 1]
    docs, where = [], {}
    for d in range(n_docs):
        if d in slots:
            g = groups[slots.index(d)]
            for k in g:
                where[k] = d
            docs.append(pad(rng, [ev[k] for k in g], words))
        else:
            other = f"Unrelated Holding {i}-{d}"
            docs.append(pad(rng, [f"{other} runs a warehouse and a small fleet of vans."], words))
    for c in uniq:
        c["doc"] = where[c["key"]] if c["key"] else None
        c["evidence"] = ev[c["key"]] if c["key"] else None
        if c["label"] == "contradicted":
            c["correction"] = good[c["key"]]
        del c["key"]
    return {
        "id": f"s{i:02d}",
        "entity": name,
        "question": f"What should a buyer know about {name}?",
        "contexts": docs,
        "answer": " ".join(c["text"] for c in uniq),
        "claims": uniq,
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("--profile", choices=("short", "long"), default="short")
    a = ap.parse_args()
    samples = [make_sample(i, a.profile) for i in range(20)]
    Path(a.out).write_text(json.dumps(samples, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
