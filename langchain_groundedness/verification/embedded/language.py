"""Tells whether a text reads as English, by its script and its function words.

Its own module because it is a language detector: word lists of 24 languages, and no claims.
"""

# ruff: noqa: RUF001  (letters of other languages are what is looked for)

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import zip_longest

__all__ = ["reads_as_english"]

_LATIN = r"A-Za-z\u00aa\u00ba\u00c0-\u02af\u0300-\u036f\u1e00-\u1eff\ua720-\ua7ff\ufb00-\ufb06"
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(rf"[^\W\d_{_LATIN}]{{2,}}")
"""Two letters at least: a single one is a symbol, as in "alpha particle" written in Greek."""
_UNSPACED_SCRIPT = re.compile(rf"[{_UNSPACED}]{{2,}}")
_MOST_OF_OTHER_SCRIPTS = 0.3
"""Share of letters; a name given in its own script beside an English sentence is less."""

# Each word speaks for every language that has it, English too: what "in" says for Dutch it also
# says for English, and only the words that English lacks tell the two apart.
_ENGLISH = frozenset(
    """
    a about after all also although always am an and another any are as at be because been before
    being between both but by can could d did do does during each either every few for from had
    has have he her here him his how however i if in into is it its just ll made many may me might
    more most much must my near no nor not of off on once one only or other our out over own per
    re s same see several shall she should since so some such t than that the their them then
    there these they this those through to too two under until up upon us use used using ve very
    via was we were what when where whether which while who whom whose why will with within
    without would yes yet you your
    al alt bare care co come dia die door due era et face fast go got hat long man me men mere met
    mi min mint most non now old par plus pod pro sale sans sea sin sold solo son sub tan ten till
    vain war
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
_OTHERS = {
    "de": """
        ab aber alle als am an auch auf aus bei beim bis bitte bleibt da damit dann darf das dass
        dem den der deren des dessen die dies diese diesem diesen dieser dieses doch durch ein eine
        einem einen einer eines er erst es etwa für gegen gibt haben hat hatte hier ich ihr ihre
        ihrem ihren ihrer im in innerhalb ins ist jede jeden jeder kann kein keine keinem keinen
        keiner können liegt man mehr mein meine mit muss müssen nach nicht noch nur ob oder ohne pro
        rund sein seine seinem seinen seiner seit sich sie sind so sodass soll sowie um und unter
        vom von vor war waren was weder weil welche welcher wenn wer werden wie wir wird wurde
        wurden wäre zu zum zur zwei zwischen über
        """,
    "fr": """
        a afin ainsi au aucun aucune aussi autre autres aux avant avec avoir ce celle celui ces cet
        cette ceux chaque chez comme contre dans de depuis des deux donc dont du elle elles en entre
        est et eux fait fut ici il ils je jusqu la le les leur leurs lors lui mais moins même ne
        nous on ont ou où par pas pendant peut peuvent plus pour qu que qui sa sans se selon sera
        ses si son sont sous sur toujours tous tout toute toutes un une vers vous était été être
        """,
    "es": """
        a al algo alguna algún ante antes aquí aunque cada como con contra cual cuando cuya cuyo de
        debe deben del desde donde dos el ella ellos en entre era es esa ese eso esta estaba este
        esto está están fue fueron ha haber hace hacia han hasta hay la las le les lo los mas me
        menos mi muy más ni ninguna ninguno no nos otra otro para pero por porque puede pueden que
        quien se sea según ser si siempre sin sobre solo son su sus también tan te tiene todas todo
        todos tras tu un una unas unos ya él
        """,
    "pt": """
        a algum alguma ao aos aqui as até cada com como contra cuja cujo da das de dela dele depois
        desde deve devem do dois dos ela ele eles em entre era essa esse esta este está estão foi
        foram há isso já lhe lo mais mas me menos mesmo muito na nas nem nenhum nenhuma no nos num
        numa não nós onde os ou para pela pelas pelo pelos pode podem por porque qual quando que
        quem se seja sejam sem sempre ser seu seus sobre sua suas são só também tem tinha todas todo
        todos têm um uma umas uns à às é
        """,
    "it": """
        a agli ai al all alla alle allo anche che chi ci come con contro così cui da dagli dai dal
        dall dalla dalle degli dei del dell della delle dello deve devono di dopo dove due era
        essere fino fra fu già gli ha hanno il in io la le lei lo loro lui ma mentre molto ne negli
        nei nel nell nella nelle nello nessun nessuna noi non nostro ogni per perché però più
        possono prima può qualche quale quando quella quello questa queste questi questo se sei
        senza si sia sono sopra stata stati stato su sua sue sugli sul sull sulla suo suoi tra tutte
        tutti tutto un una uno viene è
        """,
    "nl": """
        aan al alle alleen als andere bij daar dan dat de deze die dit doch door drie dus een elk
        elke en er geen ging haar had heb hebben heeft hem het hier hij hoe hun iedere ik in is je
        kan kunnen kunt maar mag meer men met mijn mits moet moeten na naar niet nog nu of om omdat
        onder ons onze ook op over per sinds te tegen ten toen tot tussen twee uit uw van vanaf veel
        voor waar waren was wat we wel welke werd werden wie worden wordt zal ze zich zij zijn zo
        zonder zou zullen
        """,
    "pl": """
        a aby ale bardzo bez by być był była było były będzie będą ci co czy dla do gdy gdzie go ich
        ile im ja jak jako jednak jego jej jest jeszcze jeśli już każda każde każdy kiedy która
        które którego której który którzy lub ma mają może można na nad nie niż od on ona one oraz
        po pod podczas ponad ponieważ proszę przed przez przy się swoje są ta tak także tam te tego
        tej ten to tych tylko tym we więc wszystkie za ze został została żaden że
        """,
    "sv": """
        alla allt alltid att av bara blev bli blir de dem den denna deras dess det detta dig ditt du
        där efter eller en endast ett från för före genom ha hade han har hon hur inga ingen innan
        inom inte jag kan kunde man med mellan men mer min mot mycket måste ni nu när några och
        också om på samma samt sedan sig sin sina sitt ska skulle som så till två under upp ut utan
        var vara varje vi vid vilka vilken är år över
        """,
    "da": """
        af alle alt at blev blive bliver da de den denne der deres det dette dig din disse dit du
        efter eller en er et for fra før gennem ha han har havde hun hvad hver hvilke hvilken hvis
        hvor hvordan ikke ind ingen jeg kan kun kunne man med mellem men mere mod må nogen noget nu
        når og også om op os over på samme selv siden sig sin skal skulle som så til to ud uden
        under var ved vi vil ville være år
        """,
    "no": """
        alle alt at av bare ble bli blir da de den denne der deres det dette din disse ditt du eller
        en enn er et etter for fra før gjennom ha hadde han har hun hva hver hvilke hvilken hvis
        hvor hvordan ikke ingen inn jeg kan kun kunne man med mellom men mer mot må noe noen nå når
        og også om opp oss over på samme seg selv siden sin skal skulle som så til to under ut uten
        var ved vi vil ville være år
        """,
    "fi": """
        ei eikä eivät eli enintään ennen että han he hyvin hän ja jo johon joka jolla jonka jos
        jossa jotka jälkeen kaikki kanssa koska kuin kun kuten mikä minä missä mitä muita mukaan
        mutta myös ne niiden niin noin nämä ole oli olivat olla on ovat saa se sekä sen siitä sillä
        sitten sitä tai tämä tämän tässä tätä vain voi voidaan vuonna vähintään yli
        """,
    "tr": """
        ama ancak ayrıca bir biri bu bunu böyle da daha de değil değildir diye en eğer fazla gibi
        göre hem her hiç iki ile ilk ise için kadar ki lütfen mi mı nasıl ne neden olan olarak oldu
        olduğu olur onun sadece sizin sonra tarafından tek tüm var ve veya ya yok çok şey şu
        """,
    "cs": """
        a ale ani asi až bez bude by byl byla bylo byly co do jak jako je jeden jeho jejich její jen
        jsem jsme jsou kde kdy když ke která které který lze mají musí může na nad nebo nebyl nelze
        není než od po pod podle pouze pro proto před při roce se si ta tak také to tohoto této tím
        ve však za ze že žádné žádný
        """,
    "ro": """
        a această acest aceste ai al ale am are au ca care ce cei cel cele cu când că către da dar
        de din doar după este face fi fost la le lor lui mai mult nu pe pentru poate prin până sa
        sale sau se sub sunt să toate trebuie un unei unor unui în într și
        """,
    "hu": """
        a az csak de egy egyik el ez ezt ha hogy igen is itt kell ki legyen lehet meg mert minden
        mint már még míg nagyon nem nincs olyan ott saját sem szerint után vagy van vannak volt
        voltak és
        """,
    "id": """
        ada adalah akan anda antara atau bagi bahwa banyak baru belum bisa dalam dan dapat dari
        dengan di dia dua hanya harus hingga ini itu jika juga kami karena ke kepada kita lagi lain
        lebih maka masih mereka mungkin namun oleh orang pada para saat saja sangat sebagai sebelum
        secara sedang sejak selama semua seperti serta setelah setiap suatu sudah telah tersebut
        tetapi tidak untuk yang
        """,
    "vi": """
        bị cho chỉ các có cùng cũng của do hay hơn khi không là làm lại nhiều như nhưng những này
        nên nếu phải qua ra rất sau sẽ theo thì trong trên trước tại từ và vào vì về với đang đã đó
        được đến ở
        """,
    "hr": """
        a ako ali bez bi bila bilo bio biti da dok gdje godine i ili im ima imaju iz iza ima ja
        je jedan jer još ju kad kada kako kao kod koja koje koji koju kroz li mnogo mogu može
        na nad nakon ne nego neki nema nije nisu od oko on ona oni osim po pod poslije prema pri
        prije sa samo se si sam smo su sve svi svoj ta tada taj to tog uz već vrlo za zbog što
        """,
    "et": """
        aga aasta aastal ega ehk ei enne et ette ainult iga ja jne juba järel järgi jooksul
        ka kas kes kell koos kogu kohta kui kuid kuidas kuni kus kõik käes küll ma mille millal mis
        mida mitte mõni märtsil nad neid need nende nii ning nüüd oleks olema oli olid olla oma on
        pole peab pidi pärast see seda selle sest siin siis ta tagasi tema teda teie tuleb või võib
        väga välja vahel üks üle
        """,
    "sk": """
        a aby aj ako ale alebo ani až bez bol bola bolo boli byť cez ho ich iba iný ja je jeho
        jej jeden ju každý kde keď ktorá ktoré ktorý ku len má majú medzi mnohé môže musí na nad
        nebol než nie nie od on ona oni po pod počas pre pred pri podľa roku sa sme so sú svoje ta
        tak tam ten tento to tu už vo však všetky za zo že
        """,
    "sl": """
        a ali bi bil bila bili bilo brez če čez da dva en ga ima imajo iz ja je jih jo kaj kako
        kar ker ki kje ko kot le leta lahko med na nad ne ni nekaj niso ob od oziroma po pod
        poleg pred prek pri sam samo se si sem smo so svoj ta tako tam ter to tudi več vse za
        zaradi zelo že
        """,
    "lt": """
        ar arba bei bet buvo būti dar dėl gali iki ir iš jau jei jis jie jo jos jų kad kai kaip kas
        kiek kol kur kuri kurie kuris kurių labai metais metų mūsų nei nes nėra nuo pagal per po
        prie prieš savo su tai taip tarp tas tik to todėl turi už visi yra į šis
        """,
    "lv": """
        ap ar arī bet bez bija būt caur gadā ir jau jo ka kas katrs kā kad kur kura kuri kuru kurš
        ko laikā lai līdz mēs ne no nu pa par pat pēc pie pirms šis šo tad tai tam tas to tā
        tiek tika tikai tie uz un vai var vairāk vēl viņa viņš visi zem
        """,
    "ca": """
        a al als altra amb aquest aquesta aquests així el els ella en entre era és està estan fer
        fins han haver hi ha i jo la les li llur més meu molt molts no on pel pels per però perquè
        pot qual quan que qui se segons sempre sense ser seu seva si sobre són també tenir tot
        tots un una va van vaig
        """,
}
_FEWEST_SHOUTED = 4
"""Words in capitals that make a text in capitals; fewer may be names: "MIT", "IBM UK"."""
_LEAST_FOREIGN = 0.15
"""Share of the words. In half of the rows of TabFact that were mistaken for another language, names
in lower case ("team: los angeles fc") make less than .12; sentences of other languages have .34 and
more in `benchmarks/languages.jsonl`."""
_PARTICLES = frozenset(
    """
    al as da de del della den der di do dos du e el la las le les los o of os san
    ten ter van von y zu
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
"""What stands in names: "Rio de Janeiro", "Los Angeles", "Vincent van Gogh"."""


def reads_as_english(text: str) -> bool:
    """Tell whether a text is likely to be English, so that a model of English can be trusted.

    A text is taken for another language if a third of its letters or so are of another script, or
    if more of its words are function words of one other language than of English, and these are a
    seventh of all its words or there is none of English. Names do not count; a word with accents
    counts as a function word, unless only English has any. A text in Latin script where nothing
    speaks for another language counts as English: "Paris", "42 km".
    Latin-script languages beside the 24 in the lists above are told only by their accents and by
    words that they share with one of them.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        if _mostly_of_other_scripts(text):
            return False
    english = accented = words = 0
    others: Counter[str] = Counter()
    for word, in_name in _words_by_role(text):
        folded = word.casefold()
        words += 1
        languages = _SPEAKS_FOR.get(folded, ())
        if not (in_name and languages):
            english += folded in _ENGLISH
            for language in languages:
                others[language] += 1
            accented += not word.isascii() and word[0].islower() and not languages
    if english and not others:
        return True
    foreign = max(others.values(), default=0) + accented
    return foreign <= (max(english, _LEAST_FOREIGN * words) if english else 0)


def _mostly_of_other_scripts(text: str) -> bool:
    """Weigh letters by script; a character of a script without spaces says as much as two."""
    other = sum(map(len, _OTHER_SCRIPT.findall(text)))
    unspaced = sum(map(len, _UNSPACED_SCRIPT.findall(text)))
    letters = sum(map(str.isalpha, text)) + unspaced
    return other + unspaced > _MOST_OF_OTHER_SCRIPTS * letters


def _words_by_role(text: str) -> Iterator[tuple[str, bool]]:
    """Give each word, and whether it is likely to be part of a name or an abbreviation.

    That is a capital before another one ("Los Angeles"), a particle between two ("Rio de
    Janeiro"), and a word all in capitals in a text that is not ("MIT").
    """
    words = _WORD.findall(text)
    shouted = len(words) >= _FEWEST_SHOUTED and text.isupper()
    after_name = False
    for word, *after in zip_longest(words, words[1:], words[2:], fillvalue=""):
        folded = word.casefold()
        capital = word[0].isupper()
        joins = folded in _PARTICLES and (capital or after_name)
        abbreviation = word.isupper() and len(word) > 1
        named = (capital or joins) and _begin_a_name(after)
        yield word, (abbreviation or named) and not shouted
        if folded not in _PARTICLES:
            after_name = capital and folded not in _ENGLISH and folded not in _SPEAKS_FOR


def _begin_a_name(words: list[str]) -> bool:
    first = next((word for word in words if word.casefold() not in _PARTICLES), "")
    return first[:1].isupper()


def _languages_by_word(lists: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    languages: defaultdict[str, list[str]] = defaultdict(list)
    for language, words in lists.items():
        for word in dict.fromkeys(words.split()):
            languages[word].append(language)
    return {word: tuple(names) for word, names in languages.items()}


_SPEAKS_FOR = _languages_by_word(_OTHERS)
