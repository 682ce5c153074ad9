"""Vocabulary of the invented scenes."""

__all__ = [
    "ACTS",
    "ADJECTIVES",
    "BODIES",
    "CITIES",
    "CONVERSES",
    "DECIDED",
    "FIRST_NAMES",
    "FIRST_THINGS",
    "GROUPS",
    "JOBS",
    "KINDS",
    "LAST_NAMES",
    "MADE",
    "MEASURES",
    "PEOPLE",
    "PLANS",
    "SUBSTANCES",
]


def _words(text: str) -> list[str]:
    return text.split()


def _pairs(text: str) -> list[tuple[str, str]]:
    rows = [line.strip().split(" / ") for line in text.strip().splitlines()]
    return [(one, two) for one, two in rows]


ACTS = _pairs("""
    hired / hired
    sued / sued
    praised / praised
    taught / taught
    followed / followed
    rescued / rescued
    painted / painted
    interviewed / interviewed
    visited / visited
    beat / beaten
    paid / paid
    blamed / blamed
    thanked / thanked
    attacked / attacked
    saw / seen
    bit / bitten
    called / called
    invited / invited
    replaced / replaced
    helped / helped
    criticised / criticised
    trained / trained
    forgave / forgiven
    betrayed / betrayed
    overtook / overtaken
    guarded / guarded
    nominated / nominated
    arrested / arrested
    questioned / questioned
    treated / treated
""")
"""Past tense and participle of verbs that are not the same both ways round."""

ADJECTIVES = _pairs("""
    taller / shorter
    older / younger
    faster / slower
    stronger / weaker
    richer / poorer
    heavier / less heavy
    larger / smaller
    louder / quieter
    more expensive / cheaper
    more popular / less popular
    more experienced / less experienced
    better known / less well known
    happier / unhappier
    more careful / less careful
    busier / less busy
""")

MEASURES = [
    ("is", "metres high", "higher", "lower"),
    ("is", "metres long", "longer", "shorter"),
    ("weighs", "tonnes", "heavier", "lighter"),
    ("costs", "dollars", "more expensive", "cheaper"),
    ("is", "years old", "older", "newer"),
    ("covers", "hectares", "larger", "smaller"),
    ("is", "metres deep", "deeper", "shallower"),
    ("is", "metres wide", "wider", "narrower"),
]
"""Verb, unit, and what is said of the one with more and of the one with less."""

CONVERSES = _pairs("""
    A sold T to B / B bought T from A
    A gave T to B / B was given T by A
    A lent T to B / B borrowed T from A
    A sent T to B / B received T from A
    A rented T to B / B rented T from A
    A left T to B / B inherited T from A
    A defeated B / B lost to A
    A is the teacher of B / B is a pupil of A
    A employs B / B works for A
    A is the parent of B / B is the child of A
    A succeeded B in office / B was the predecessor of A
    A owes money to B / B is owed money by A
    A finished ahead of B / B finished behind A
    A leads B / B is led by A
    A showed T to B / B was shown T by A
    A exported T to B / B imported T from A
    A took T from B / B lost T to A
    A outlived B / B died before A
    A acquired T from B / B sold T to A
    A lost the case against B / B won the case against A
    A reports to B / B is in charge of A
    A inspired B / B was influenced by A
""")
"""The same from the other side; A and B are persons, T is a thing."""

DECIDED = [
    ("approved", "approve", "rejected"),
    ("accepted", "accept", "turned down"),
    ("passed", "pass", "voted down"),
    ("allowed", "allow", "banned"),
    ("backed", "back", "opposed"),
    ("upheld", "uphold", "overturned"),
    ("signed", "sign", "vetoed"),
    ("adopted", "adopt", "abandoned"),
    ("funded", "fund", "refused to fund"),
    ("ratified", "ratify", "refused to ratify"),
]
"""Said yes, the same as an infinitive, said no."""

BODIES = _words("""
    committee council parliament board court agency ministry senate union company regulator
    assembly university commission jury
""")

PLANS = _words("""
    budget merger drug law treaty plan proposal vaccine amendment contract reform tax project
    motion permit ban loan
""")

PEOPLE = _words("""
    farmer nurse wolf horse general pilot lawyer sailor teacher fox merchant bishop soldier
    goalkeeper singer hunter bear tiger goat duke captain guard baker journalist boxer company
    bank museum club firm minister clerk monk poet engineer mechanic waiter surgeon student
    judge tailor swan shepherd landlord tenant editor rival
""")

MADE = _words("""
    bridge tunnel library tower stadium house ship theatre mill station garden painting castle
    lighthouse chapel hospital canal school market dam harbour farm boat statue clock palace
    hotel warehouse airport reservoir barn fountain factory cinema gallery pier observatory
""")

JOBS = _words("""
    carpenter violinist chemist dentist sculptor geologist translator cook barber architect
    novelist gardener astronomer weaver plumber historian botanist dancer economist optician
""")

GROUPS = _words("""
    students visitors members passengers workers drivers patients players residents guests
    voters teachers customers prisoners applicants
""")

SUBSTANCES = _words("""
    ginger zinc caffeine lavender iodine magnesium turmeric aspirin ethanol biotin melatonin
    glycerol selenium quinine camphor
""")

FIRST_THINGS = _words("""
    tournament festival election flight expedition concert race fair parade exhibition regatta
    congress
""")

KINDS = [
    tuple(line.strip().split(" / "))
    for line in """
    spaniel / dog / cat
    sparrow / bird / bat
    oak / tree / fern
    trout / fish / crab
    rose / flower / mushroom
    violin / instrument / painting
    hammer / tool / toy
    lorry / vehicle / boat
    novel / book / film
    sofa / piece of furniture / lamp
    diamond / gem / coin
    canoe / boat / car
    apple / fruit / cake
    carrot / vegetable / fruit
    beetle / insect / spider
    cottage / house / shop
    trumpet / instrument / radio
    sapphire / gem / map
    lemon / fruit / loaf
    tractor / machine / statue
    viper / snake / frog
    jacket / piece of clothing / bag
    """.strip().splitlines()
]
"""Something, a wider word for it, and something beside it."""

CITIES = _words("""
    Turin Bergen Lyon Porto Leeds Gdansk Aarhus Ghent Basel Linz Malaga Tampere Cork Utrecht
    Dresden Zagreb Osaka Perth Denver Quito Lagos Hanoi Fresno Tucson Nantes Bilbao
""")

FIRST_NAMES = _words("""
    Anna Omar Lucia Peter Mei Ivan Grace Tomas Fatima Henry Ingrid Carlos Nadia Walter Aisha
    Simon Elena Victor Hana Louis Martha Rashid Clara Edwin Sofia Bruno
""")

LAST_NAMES = _words("""
    Keller Okafor Marsh Lindqvist Romero Tanaka Novak Byrne Castell Dubois Haddad Iversen Petrov
    Quinn Sato Tiller Vance Weaver Abbott Nkosi Moreau Lang
""")
