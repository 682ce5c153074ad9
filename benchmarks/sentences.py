"""Compare sentence splitters: boundaries found on a hand-made test set, speed, import time.

Run `python benchmarks/sentences.py`. Candidates that are not installed are left out. The cases
are ours: each line of a case is one sentence (or one unit of markdown, such as a list item), and
the text is put together from the lines as the case says.
"""

# ruff: noqa: RUF001  (letters of other scripts are what is tested)

import importlib
import importlib.util
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from langchain_groundedness.text.sentences import split_sentences

Splitter = Callable[[str], list[str]]


class Case(NamedTuple):
    """A text, as the units it should be split into and what stands between them."""

    kind: str
    units: tuple[str, ...]
    joint: str = " "

    @property
    def text(self) -> str:
        """The text to split."""
        return self.joint.join(self.units)


def case(kind: str, *units: str, joint: str = " ") -> Case:
    """Make a case.

    Args:
        kind: Heading under which it is counted.
        units: What it should be split into.
        joint: What stands between the units.

    Returns:
        The case.
    """
    return Case(kind, units, joint)


CASES = [
    case("plain", "The bridge opened in 1932.", "It carries eight lanes of traffic."),
    case("plain", "Did it work?", "Yes!", "It ran for two hours."),
    case("plain", "one sentence without a capital or full stop"),
    case("plain", "I came.", "I saw.", "I left."),
    case("plain", "It was built by hand.", "iPhones came much later."),
    case("plain", "The plan was theirs.", "2019 was the best year."),
    case("abbreviation", "Dr. Weber met Mrs. Lane at St. Mary's Hospital.", "They talked."),
    case("abbreviation", "Acme Inc. bought Foo Ltd. last year.", "Prof. Oak approved."),
    case("abbreviation", "The Acme Corp. headquarters moved.", "Staff followed."),
    case("abbreviation", "He works for Acme Inc.", "She does not."),
    case("abbreviation", "See Fig. 3 and Eq. 4 on p. 12 of vol. 2.", "They agree."),
    case("abbreviation", "It was approx. 5 km, i.e. 3 miles.", "We walked."),
    case("abbreviation", "Bring fruit, e.g. apples or pears, etc. to the desk.", "Thanks to all."),
    case("abbreviation", "He arrived at 5 p.m. on Monday.", "She came at 7 a.m. sharp."),
    case("abbreviation", "The U.S. economy grew.", "So did the U.K. market."),
    case("abbreviation", "He moved to the U.S. in 2001.", "He stayed."),
    case("abbreviation", "Smith et al. 2020 found this.", "Jones vs. Smith was later."),
    case("abbreviation", "Gen. Lee and Lt. Col. Fox met on Jan. 5.", "Capt. Hook was late."),
    case("abbreviation", "Meet at No. 10 on Main St. tomorrow.", "It is near Fifth Ave. north."),
    case("decimal", "Revenue was $2.1B in Q3.", "It rose 3.5% to 4.75 million."),
    case("decimal", "Pi is 3.14159.", "Euler's number is 2.718."),
    case("decimal", "It costs 1.299,00 EUR.", "We paid 1,299.00 USD."),
    case("version", "Version v2.1.3 fixed it.", "Python 3.12 is faster."),
    case("version", "Install foo==1.0.0rc1 first.", "Then upgrade to 2.0."),
    case("version", "Edit config.yaml and main.py.", "Node.js reads them."),
    case("version", "The address is 192.168.0.1.", "Port 80 is open."),
    case("initials", "J. R. R. Tolkien wrote it.", "George R.R. Martin did not."),
    case("initials", "John F. Kennedy spoke.", "W. E. B. Du Bois listened."),
    case("initials", "The result is vitamin C.", "It is cheap."),
    case("quote", '"Stop!" he said.', "She did not."),
    case("quote", 'She said "I am done."', "Then she left."),
    case("quote", "He wrote: \u201cIt works.\u201d", "Nobody believed him."),
    case("quote", "(It was raining.)", "We stayed in."),
    case("quote", "The firm (est. 1901) is old.", "Its rival is not."),
    case("quote", "\u00abC\u2019est vrai.\u00bb", "Il est parti."),
    case("ellipsis", "He waited... and waited.", "Nobody came."),
    case("ellipsis", "He waited\u2026", "Then he left."),
    case("ellipsis", "It just ended...", "Nobody knew why."),
    case("ellipsis", "Really?!", "Yes!!!", "Good."),
    case("emoji", "It works \U0001f389", "Ship it now", joint="\n\n"),
    case("emoji", "Great job! \U0001f600", "Now rest."),
    case("emoji", "We won \U0001f3c6.", "They lost \U0001f62d!"),
    case("url", "See https://example.com/a.b?c=d.e for more.", "Write to a.b@example.co.uk."),
    case("url", "The site is example.com.", "It is down."),
    case("url", "Read [the guide](https://example.com/x.html).", "It is short."),
    case("citation", "Sales rose in May. [1]", "They fell in June. [2, 3]"),
    case("citation", "Sales rose [1].", "They fell (report.md#sales)."),
    case("no space", "The first one ends here.", "Next starts at once.", joint=""),
    case("no space", "Is it open?", "Yes.", "Come in.", joint=""),
    case("no space", "It was done in 2020.", "Then came 2021.", joint=""),
    case("list", "- Apples are red", "- Pears are green", "- Plums are blue", joint="\n"),
    case("list", "1. Open the door.", "2. Walk in.", "3. Close it.", joint="\n"),
    case("list", "* It has two.", "They differ."),
    case("list", "The parts are:", "- a wheel", "- an axle", joint="\n"),
    case("list", "a) first thing", "b) second thing", joint="\n"),
    case("list", "\u2022 one bullet", "\u2022 two bullets", joint="\n"),
    case("heading", "# Results", "Sales rose.", "They rose by 5%.", joint="\n"),
    case("heading", "## 2.1 Methods", "We asked Dr. Oak.", joint="\n\n"),
    case("heading", "Summary\n=======", "All is well.", joint="\n"),
    case("heading", "**Summary**", "All is well.", joint="\n\n"),
    case("table", "| Name | Age |", "|---|---|", "| Ann | 31 |", "| Bo | 29 |", joint="\n"),
    case("table", "The table:", "| a | b |", "|:-:|--:|", "| x. Y | 2 |", "Done.", joint="\n"),
    case("code", "Run this:", "```python\nx = 1. + y\nprint(x). Foo\n```", "It works.", joint="\n"),
    case("code", "~~~\na. B. C.\n~~~", "It works.", joint="\n"),
    case("code", "Call `np.array(x). Sum` on it.", "Then stop."),
    case("block", "A paragraph ends", "Another begins", joint="\n\n"),
    case("block", "A line that is\nwrapped softly goes on.", "A second one\ntoo."),
    case("block", "> A quoted line.", "> Another quoted line.", "After it.", joint="\n\n"),
    case("block", "Before.", "---", "After.", joint="\n\n"),
    case("block", "First line.", "Second line.", joint="\r\n\r\n"),
    case("cjk", "今天天气很好。", "我们去公园吧!", "你来吗?", joint=""),
    case("cjk", "価格は3.5ドルです。", "「高いですね。」と彼は言った。", joint=""),
    case("cjk", "他说:“我来了。”", "然后他走了。", joint=""),
    case("cjk", "东京是日本的首都。", "Tokyo is large.", joint=""),
    case("cjk", "서울은 한국의 수도입니다.", "인구는 약 950만 명입니다."),
    case("arabic", "ما هي العاصمة؟", "القاهرة هي العاصمة.", "عدد السكان كبير."),
    case("arabic", "یہ ایک جملہ ہے۔", "یہ دوسرا ہے۔"),
    case("indic", "यह पहला वाक्य है।", "यह दूसरा है।"),
    case("german", "Er kam z.B. am 3. Mai an.", "Dann ging er."),
    case("german", "Dr. Müller, d.h. der Arzt, half uns.", "Das war gut."),
    case("german", "Es kostet ca. 5 Mio. Euro bzw. mehr.", "Das ist viel."),
    case("german", "Die Fa. Maier hat u.a. Nr. 5 gekauft.", "Gut so."),
    case("french", "M. Dupont et Mme. Martin sont là.", "Ils parlent."),
    case("french", "Où est-il ?", "Il est ici !", "Bien."),
    case("french", "Il a vu p. ex. trois chats.", "C'est tout."),
    case("spanish", "¿Dónde está?", "¡Aquí!", "El Sr. López y la Sra. Díaz llegaron."),
    case("spanish", "Vive en EE. UU. desde 1990.", "Está bien."),
    case("russian", "Он родился в 1990 г. в Москве.", "Потом уехал."),
]  # fmt: skip


HELD_OUT = [
    case("english", "Mr. and Mrs. Hale live at 12 Elm Rd. in Leeds.",
         "Their son, J.P. Hale, moved."),
    case("english", "The firm, est. 1890, sold 3.4 bn. units.", "Sales vs. 2019 were up 0.5 pts."),
    case("english", "Is it the U.S.?", "No, it is the E.U.", "That settles it."),
    case("english", "We met Sen. Ruiz, Rep. Li and Gov. Ray.", "All agreed at 9:30 a.m."),
    case("english", "Take approx. 2 tbsp. of oil.", "Stir for 10 min. and rest."),
    case("english", "He has a Ph.D. in physics.", "She has an M.A. from Yale."),
    case("english", "\u201cWhy not?\u201d asked Tom.", "\u201cBecause,\u201d she said."),
    case("english", "It was 5 ft. 3 in. tall.", "Nobody noticed."),
    case("english", "Visit docs.python.org/3/library/re.html today.",
         "Then run pip install x==1.2."),
    case("english", "The file a.tar.gz is large.", "See sec. 2.4 of README.md."),
    case("english", "Yahoo! was sold.", "Jeopardy! is a show.", "So what?"),
    case("english", "Wow!!", "That (really!) worked...", "OK."),
    case("english", "The cat sat.", "The dog ran.", joint=""),
    case("english", "It fell in 2008 (see Fig. 2a).", "It rose later."),
    case("english", "He said it was 'fine.'", "It was not."),
    case("english", "Mt. Fuji is in Japan.", "Ft. Knox is not."),
    case("markdown", "Steps:", "1) Mix it well.", "2) Bake it.", "   Wait an hour.", joint="\n"),
    case("markdown", "### Q3. Results", "- **Sales:** up 5%.", "- **Costs:** down.", joint="\n"),
    case("markdown", "| Q. | A. |", "| :--- | ---: |", "| Why? | Because. |", "", joint="\n"),
    case("markdown", "1. First.", "2. Second item", "", "The end.", joint="\n"),
    case("markdown", "Use it:", "```\n$ run. Now\n```", "", "Done.", joint="\n"),
    case("markdown", "> He came.", "He saw.", "", "> End", joint="\n"),
    case("other", "第3.5节已结束。", "他问：\u201c你是谁？\u201d", "没人回答。", joint=""),
    case("other", "「来て！」と叫んだ。", "誰も来なかった。", joint=""),
    case("other", "Das Gesetz (vgl. Abs. 2 Nr. 3) gilt seit dem 1. Januar 2020.", "Es ist neu."),
    case("other", "Sie wohnt in der Hauptstr. 5 in Bonn.", "Prof. Dr. Kern auch."),
    case("other", "Cf. art. 12, p. 45.", "Mme Curie et M. Curie, c.-à-d. les deux, sont venus."),
    case("other", "El Dr. Pérez nació en el a. C. 50.", "La Dra. Gómez no."),
    case("other", "Il sig. Rossi è qui.", "La dott.ssa Bianchi arriva alle 10.30."),
    case("other", "O Sr. Silva chegou.", "A Sra. Costa saiu às 5 h."),
    case("other", "Dhr. de Vries woont in Den Haag.", "Hij is o.a. arts."),
    case("other", "Он живёт на ул. Ленина.", "Это далеко."),
]  # fmt: skip
"""Written after the splitter was finished, and never used to change it."""


def _ends(units: list[str]) -> set[int]:
    """Boundaries as counts of non-space characters, which no splitter's trimming can shift."""
    ends, count = set(), 0
    for unit in units:
        count += len("".join(unit.split()))
        ends.add(count)
    return ends


def score(split: Splitter, cases: list[Case]) -> dict[str, tuple[int, int, int, int, int]]:
    """Count what a splitter finds, per kind of case.

    Args:
        split: The splitter.
        cases: What to split.

    Returns:
        For each kind: cases, cases without a mistake, boundaries found, missed, invented.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    for each in cases:
        want, got = _ends(list(each.units)), _ends(split(each.text))
        row = counts[each.kind]
        for place, value in enumerate(
            (1, want == got, len(want & got), len(want - got), len(got - want))
        ):
            row[place] += value
    return {kind: (a, b, c, d, e) for kind, (a, b, c, d, e) in counts.items()}


def f1(found: int, missed: int, invented: int) -> float:
    """Harmonic mean of the precision and the recall of boundaries."""
    return 2 * found / max(1, 2 * found + missed + invented)


def candidates() -> Iterator[tuple[str, str | None, Splitter]]:
    """Yield name, module to time the import of, and function of every installed candidate."""
    if importlib.util.find_spec("sentencex"):
        sentencex = importlib.import_module("sentencex")

        yield "sentencex", "sentencex", lambda text: list(sentencex.segment("en", text))
    if importlib.util.find_spec("nupunkt"):
        nupunkt = importlib.import_module("nupunkt")

        yield "nupunkt", "nupunkt", lambda text: [text[a:b] for a, b in nupunkt.sent_spans(text)]
    if importlib.util.find_spec("pysbd"):
        pysbd = importlib.import_module("pysbd")

        segmenter = pysbd.Segmenter(language="en", clean=False)
        yield "pysbd", "pysbd", lambda text: list(segmenter.segment(text))
    yield (
        "ours",
        "langchain_groundedness.text.sentences",
        lambda text: [sentence.text for sentence in split_sentences(text)],
    )


def speed(split: Splitter, megabytes: float) -> float:
    """Megabytes per second on prose made of the cases."""
    prose = "\n\n".join(" ".join(c.units) for c in CASES if c.joint == " ")
    text = (prose + "\n\n") * int(megabytes * 1e6 / len(prose) + 1)
    begin = time.perf_counter()
    split(text)
    return len(text.encode()) / 1e6 / (time.perf_counter() - begin)


def import_seconds(module: str) -> float:
    """Seconds that a fresh interpreter takes to import the module, best of three."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(3)
    )


def main() -> None:
    """Print a paragraph per candidate; with `-v` also what it got wrong."""
    for name, module, split in candidates():
        print(f"\n{name}")
        for title, cases in (("cases", CASES), ("held out", HELD_OUT)):
            counts = score(split, cases)
            total = [sum(row[i] for row in counts.values()) for i in range(5)]
            print(f"  {title}: {total[1]}/{total[0]} right, boundary F1 {f1(*total[2:]):.3f}")
            print("    " + ", ".join(f"{kind} {row[1]}/{row[0]}" for kind, row in counts.items()))
            for each in cases if "-v" in sys.argv else ():
                if _ends(list(each.units)) != _ends(got := split(each.text)):
                    print(f"    {each.kind}: {got}")
        print(f"  {speed(split, 0.02 if name == 'pysbd' else 0.3):.2f} MB/s", end="")
        print(f", import {import_seconds(module) * 1000:.0f} ms" if module else "")


if __name__ == "__main__":
    main()
