"""Words that may stand for each other, and words that may not: for claims made by rule."""

__all__ = ["OPPOSITES", "SAME"]

SAME: list[tuple[str, str]] = [
    tuple(line.strip().split(" = "))  # type: ignore[misc]  # two on each line
    for line in """
    began = started
    started = began
    located in = situated in
    was born in = came from
    died = passed away
    film = movie
    films = movies
    received = was given
    several = a number of
    many = numerous
    numerous = many
    large = big
    famous = well-known
    well-known = famous
    primarily = mainly
    mainly = mostly
    however = though
    approximately = about
    about = around
    around = roughly
    children = kids
    purchased = bought
    bought = purchased
    constructed = built
    built = constructed
    established = founded
    founded = established
    attended = went to
    studied at = was a student at
    moved to = relocated to
    lived in = resided in
    resided in = lived in
    worked as = was employed as
    author = writer
    writer = author
    physician = doctor
    attorney = lawyer
    automobile = car
    cars = automobiles
    company = firm
    firm = company
    often = frequently
    frequently = often
    usually = generally
    typically = usually
    because = since
    also = additionally
    additionally = also
    known as = called
    called = known as
    helped = assisted
    assist = help
    attempt = try
    attempted = tried
    obtained = got
    gained = obtained
    won = was the winner of
    defeated = beat
    beat = defeated
    released = put out
    published = issued
    married = wed
    wife = spouse
    husband = spouse
    killed = slain
    huge = enormous
    small = little
    entire = whole
    whole = entire
    important = significant
    significant = important
    principal = main
    main = chief
    currently = now
    formerly = previously
    previously = earlier
    initially = at first
    eventually = in the end
    approximately half = about half
    the United States = the US
    the United Kingdom = the UK
    United States = U\\.S\\.
    consists of = is made up of
    includes = contains
    contains = includes
    features = has
    created = made
    appeared in = was in
    starred in = had a leading role in
    directed by = made by director
    near = close to
    close to = near
    across = throughout
    throughout = across
    until = up to
    used = employed
    uses = makes use of
    wrote = authored
    composed = wrote
    joined = became a member of
    left = departed from
    returned to = came back to
    grew up = was raised
    raised = brought up
    ended = finished
    finished = ended
    completed = finished
    career = professional life
    university = college
    city = town
    village = settlement
    song = track
    album = record
    songs = tracks
    match = game
    team = side
    player = athlete
    war = conflict
    battle = fight
    soldiers = troops
    king = monarch
    queen = monarch
    """.strip().splitlines()
]
"""A pattern and what may stand for it in most sentences."""

OPPOSITES: list[tuple[str, str]] = [
    tuple(line.strip().split(" / "))  # type: ignore[misc]  # two on each line
    for line in """
    before / after
    first / last
    first / second
    second / third
    early / late
    earlier / later
    all / some
    all / none
    most / few
    many / few
    always / sometimes
    always / never
    often / rarely
    only / also
    more than / less than
    at least / at most
    over / under
    above / below
    increased / decreased
    increase / decrease
    rose / fell
    won / lost
    largest / smallest
    highest / lowest
    oldest / youngest
    best / worst
    older / younger
    larger / smaller
    north / south
    northern / southern
    east / west
    eastern / western
    left / right
    male / female
    men / women
    father / son
    mother / daughter
    father / uncle
    brother / cousin
    sister / cousin
    husband / brother
    wife / sister
    son / brother
    married / divorced
    born / died
    accepted / rejected
    allowed / forbidden
    supported / opposed
    support / oppose
    success / failure
    successful / unsuccessful
    public / private
    professional / amateur
    major / minor
    may / must
    may / will
    can / cannot
    could / did
    because of / despite
    caused / prevented
    with / without
    include / exclude
    joined / left
    began / ended
    opened / closed
    buy / sell
    bought / sold
    arrived / departed
    gained / lost
    rural / urban
    ancient / modern
    high / low
    long / short
    hot / cold
    wet / dry
    rich / poor
    strong / weak
    positive / negative
    president / vice president
    director / producer
    singer / drummer
    actor / director
    actress / director
    writer / producer
    novel / play
    album / single
    novel / film
    captain / coach
    goalkeeper / defender
    mayor / governor
    senator / governor
    professor / student
    century / decade
    years / months
    months / weeks
    days / hours
    million / billion
    million / thousand
    miles / kilometres
    km / mi
    metres / feet
    percent / million
    American / British
    English / French
    German / Austrian
    Spanish / Portuguese
    Italian / Greek
    Canadian / American
    Indian / Pakistani
    Russian / Polish
    Chinese / Japanese
    Australian / New Zealand
    January / October
    Monday / Friday
    summer / winter
    spring / autumn
    """.strip().splitlines()
]
"""Words that make a sentence false when one stands for the other, in most sentences."""
