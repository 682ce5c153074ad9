"""Whether a text reads as English: other languages are told from it, names and numbers are not."""

# ruff: noqa: RUF001  (letters of other languages are what is tested)

import ast
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from langchain_core.documents import Document

from langchain_groundedness import Claim, EmbeddedVerifier, SentenceClaimExtractor, VerificationTask

ROOT = Path(__file__).parent.parent.parent
ROWS = ROOT / "benchmarks" / "languages.jsonl"
ENGLISH = Document("The depot of the north opens at nine in the morning.")


def not_english(texts: Sequence[str]) -> list[str]:
    """Claims that the verifier does not look for in English documents."""
    claims = tuple(Claim(id=str(n), text=text) for n, text in enumerate(texts))
    task = VerificationTask(claims=claims, documents=(ENGLISH,))
    return [
        verdict.claim.text
        for verdict in EmbeddedVerifier().invoke(task)
        if "another language" in (verdict.reason or "")
    ]


def reads_as_english(text: str) -> bool:
    return not not_english([text])


@pytest.mark.skipif(not ROWS.exists(), reason="benchmarks/ is not part of this distribution")
@pytest.mark.parametrize("language", ["de", "fr", "es", "pt", "zh"])
@pytest.mark.parametrize("part", ["claim", "evidence"])
def test_claims_and_evidence_in_other_languages_are_told(language: str, part: str) -> None:
    rows = map(json.loads, ROWS.read_text(encoding="utf-8").splitlines())
    texts = [row[part] for row in rows if row["language"] == language]
    missed = set(texts) - set(not_english(texts))
    assert len(missed) <= 0.03 * len(texts), missed


@pytest.mark.skipif(not ROWS.exists(), reason="benchmarks/ is not part of this distribution")
@pytest.mark.parametrize("language", ["de-en", "es-en"])
def test_of_an_english_text_and_one_that_is_not_only_the_first_reads_as_english(
    language: str,
) -> None:
    rows = map(json.loads, ROWS.read_text(encoding="utf-8").splitlines())
    for row in rows:
        if row["language"] == language:
            assert reads_as_english(row["claim"]) != reads_as_english(row["evidence"]), row


@pytest.mark.parametrize(
    "text",
    [
        "Muzej je otvoren 1921. godine i ima veliku zbirku slika.",
        "Muuseum avati 1921. aastal ja seal on suur kogu.",
        "Múzeum bol otvorený v roku 1921 a má veľkú zbierku.",
        "Ljubljana je glavno mesto Slovenije.",
        "Agorwyd yr amgueddfa yn 1921 ac mae ganddi gasgliad mawr.",
        "Museoa 1921ean ireki zen eta bilduma handia du.",
        "Die museum is in 1921 geopen en het nie baie besoekers nie.",
        "Vilnius yra Lietuvos sostinė.",
        "Rīga ir Latvijas galvaspilsēta.",
        "El museu va ser inaugurat el 1921.",
    ],
)
def test_smaller_languages_in_latin_script_are_told_too(text: str) -> None:
    assert not reads_as_english(text)


def test_rows_of_names_in_lower_case_beside_an_english_claim_read_as_english() -> None:
    rows = (
        "1957 season. rider: emile van der berg; team: de zwaan; points: 8; bike: norton 500; "
        "result: not placed; laps: 14; grid: 5. rider: josé da silva; team: las palmas; points: 6; "
        "bike: honda 450; result: second; laps: 14; grid: 9. rider: jános drapál; team: de zwaan; "
        "points: 3; bike: norton 500; result: third; laps: 13; grid: 2."
    )
    assert reads_as_english(f"{rows} José da Silva has 6 points.")


def test_sentences_of_the_readme_and_of_docstrings_read_as_english() -> None:
    extractor = SentenceClaimExtractor()
    sentences = [claim.text for text in own_texts() for claim in extractor.invoke(text)]
    missed = not_english(sentences)
    assert len(sentences) > 1_000
    assert len(missed) <= 0.005 * len(sentences), missed


def own_texts() -> Iterator[str]:
    yield from (path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("*.md")))
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in sorted((ROOT / "langchain_groundedness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, documented):
                yield ast.get_docstring(node) or ""


@pytest.mark.parametrize(
    "text",
    [
        "De winkel is op zondag gesloten, maar de kassa bij de ingang blijft open.",
        "Het pakket wordt binnen drie dagen bij u thuis bezorgd.",
        "La garanzia copre i difetti di fabbrica per due anni.",
        "Il treno per Torino non si ferma nelle stazioni più piccole.",
        "Umowa została zawarta na czas nieokreślony.",
        "Nie wolno otwierać drzwi podczas jazdy.",
        "Priset gäller till och med den sista juni.",
        "Hunden måste hållas kopplad i parken.",
        "Butikken har åbent hver dag undtagen søndag.",
        "Prisen gælder ikke for medlemmer.",
        "Toget går ikke på søndager.",
        "Boka ble gitt ut etter krigen.",
        "Museo on suljettu maanantaisin, mutta kahvila on auki.",
        "Takuu ei kata vaurioita, jotka johtuvat väärästä käytöstä.",
        "Bu ürün iki yıl garanti kapsamındadır.",
        "Müze pazartesi günleri kapalı ve giriş ücretsiz değil.",
        "Smlouva byla uzavřena na dobu neurčitou.",
        "Muzeum je v pondělí zavřené.",
        "Contractul a fost încheiat pe o perioadă de doi ani.",
        "Magazinul nu este deschis duminica.",
        "A múzeum hétfőn nem tart nyitva.",
        "A szerződés két évre szól, és nem hosszabbítható meg.",
        "Barang yang sudah dibeli tidak dapat dikembalikan.",
        "Museum ini buka setiap hari dan tidak memungut biaya untuk anak.",
        "Sản phẩm này được bảo hành trong hai năm.",
        "Bảo tàng không mở cửa vào thứ hai.",
        "Der Vertrag läuft über zwei Jahre.",
        "DER EINTRITT IST FREI UND NICHT BEGRENZT.",
        "Музей закрыт по понедельникам.",
        "Το μουσείο είναι κλειστό τη Δευτέρα.",
        "المتحف مغلق يوم الاثنين.",
        "המוזיאון סגור ביום שני.",
        "博物館は月曜日に休館します。",
        "박물관은 월요일에 문을 닫습니다.",
        "संग्रहालय सोमवार को बंद रहता है।",
        "พิพิธภัณฑ์ปิดวันจันทร์",
        "GPT-4模型支持中文和英文。",
    ],
)
def test_other_languages_are_told(text: str) -> None:
    assert not reads_as_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "42 km",
        "$2.1B",
        "2021-03-03",
        "Yes.",
        "No",
        "Paris",
        "São Paulo",
        "Los Angeles",
        "Rio de Janeiro",
        "Vincent van Gogh",
        "Johannes Diderik van der Waals",
        "Der Spiegel",
        "MIT",
        "Amy Jo Johnson",
        "Müller GmbH",
        "Revenue up 4%",
        "IT TOOK TWO YEARS.",
        "Rivera moved from Santa Cruz de la Sierra to Las Palmas de Gran Canaria.",
        "Tokyo (東京) is the capital of Japan.",
        "The café serves crème brûlée.",
        "The rays are of three kinds, α, β and γ.",
        "Apples die fast in the war on pests.",
        "Bob met Alice in 2019.",
        "Smith et al. (ed.) sold ten of them.",
        "e\u0301clair of the day",
    ],
)
def test_english_names_and_numbers_read_as_english(text: str) -> None:
    assert reads_as_english(text)
