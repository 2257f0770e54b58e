"""A toy of the structure of HGMem's Appendix H, whose text was not to be had: reconstructed, with a story of its own.

Three iterations over a small graph. In the first two points are inserted; in the second one is updated by local
investigation and one is inserted by global exploration; in the third two points are merged, and the merged point's
entities are the union of theirs.
"""

from memory.encoder import make_encoder

ENCODER = make_encoder("hash", "256", 64, "cpu")

Told = tuple[str, list[tuple[str, str, str]]]
PASSAGES: dict[str, Told] = {
    "Lantern": (
        "Edda Vance forged the tower lantern that hangs in Corl Tower.",
        [("edda vance", "forged", "tower lantern"), ("tower lantern", "hangs in", "corl tower")],
    ),
    "Sale": (
        "Corl Tower was sold to the Brandel family in 1811.",
        [("corl tower", "was sold to", "brandel family")],
    ),
    "Workshop": (
        "Edda Vance left her workshop to her pupil Joss Merin.",
        [("edda vance", "left her workshop to", "joss merin")],
    ),
    "Wedding": (
        "Joss Merin married Ottilie, a daughter of the Brandel family.",
        [("joss merin", "married", "ottilie"), ("ottilie", "is a daughter of", "brandel family")],
    ),
    "Oath": (
        "The wardens swear never to let the flame of the lantern go out.",
        [("wardens", "swear by", "flame")],
    ),
    "Ledger": (
        "In the ledger of the wardens the flame is paid for by Ottilie.",
        [("ledger", "belongs to", "wardens"), ("flame", "is paid for by", "ottilie")],
    ),
    "Tea": ("Tea is grown on the terraces of Sarn.", [("tea", "is grown on", "terraces of sarn")]),
}

QUESTION = "Why does Corl Tower never go dark?"

FORGED = "Edda Vance forged the lantern of Corl Tower."
SOLD = "Corl Tower belongs to the Brandel family."
HEIR = "Edda Vance forged the lantern of Corl Tower, and Joss Merin inherited her workshop."
OATH = "The wardens swore to keep the flame alight."
PAID = "Ottilie Brandel pays for the wardens' flame."
WHOLE = "Ottilie Brandel pays the wardens, who swore to keep the flame of the lantern alight."
