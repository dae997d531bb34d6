"""How wide a text is: a table of character widths for fonts with Arial's metrics.

Helvetica, Arial, Liberation Sans and Arimo share these widths, so that boxes can be sized without
a font. Widths are in thousandths of the font size, by width, with every character that has it.
"""

from __future__ import annotations

import unicodedata

_REGULAR = {
    191: "'",
    222: "ijlįĵĺļłſίι‘’",
    260: "|¦",
    278: " !,./:;I[\\]ft·ÌÍÎÏìíîïĨĩĪīĬĭĮİıţŧΙΪ",
    292: "ľ",
    333: "()-`r¡¨²³´¸¹ŕŗř“”›‹",
    334: "{}ŀ",
    350: "•",
    355: '"',
    365: "º΢г",
    370: "ª",
    375: "ť",
    389: "*",
    395: "τ",
    400: "°",
    438: "к",
    441: "ζ",
    444: "ĳ",
    446: "έε",
    448: "ξ",
    458: "зт",
    469: "^",
    482: "ς",
    494: "∂",
    500: "JcksvxyzçýÿćĉċčĴķĸśŝşšŷźżžγκλνсух↑↓",
    510: "э",
    521: "чь",
    525: "χ",
    531: "в",
    537: "¶",
    542: "Гпя",
    547: "ΰυ",
    549: "±÷≤≥≠√",
    551: "Γ",
    552: "¯н",
    556: "#$0123456789?L_abdeghnopqu¢£¤¥§«»àáâãäåèéêëðñòóôõöùúûüþāăąđēĕėęěĝğġģĥħĹĻĽĿŁńņňŋōŏőũūŭůűųήηθοаеор–€",
    557: "δ",
    559: "ий",
    569: "ρ",
    573: "бц",
    575: "β",
    576: "µμ",
    578: "άα",
    583: "Кдл",
    584: "+<=>~¬×−",
    604: "ŉЗ",
    611: "FTZ¿ßøŢŤŦŹŻŽΖΤТ",
    612: "∆",
    615: "ď",
    617: "σ",
    618: "Σ",
    625: "ъ",
    635: "У",
    648: "φ",
    650: "Ξ",
    656: "БЛЬ",
    667: "&ABEKPSVXYÀÁÂÃÄÅÈÉÊËÝÞĀĂĄĒĔĖĘĚĶŚŜŞŠŶŸΑΒΕΚΡΥΧΫАВЕРХЧ",
    668: "ΔΛ",
    669: "ж",
    677: "Д",
    688: "м",
    690: "π",
    713: "ψ∞∑",
    719: "ИЙПЭы",
    722: "CDHNRUwÇÐÑÙÚÛÜĆĈĊČĎĐĤĦŃŅŇŔŖŘŨŪŬŮŰŲŵΗΝΠНСЯ",
    723: "Ŋ",
    735: "Ĳ",
    737: "©®",
    740: "Ц",
    748: "Ω",
    750: "ю",
    760: "Ф",
    778: "GOQÒÓÔÕÖØĜĞĠĢŌŎŐΘΟО",
    781: "ω",
    792: "Ъ",
    798: "Φ",
    802: "ш",
    823: "фщ∏",
    833: "MmΜМ",
    834: "¼½¾",
    835: "Ψ",
    885: "Ы",
    889: "%æ",
    917: "Ш",
    923: "Ж",
    938: "Щ",
    944: "WœŴ",
    1000: "ÆŒ—…→←™",
    1010: "Ю",
    1015: "@",
}
_BOLD = {
    238: "'",
    278: " ,./I\\ijl·ÌÍÎÏìíîïĨĩĪīĬĭĮįİıĵĺļłſΙΪίι‘’",
    280: "|¦",
    333: "!()-:;[]`ft¡¨²³´¸¹ţŧ›‹",
    350: "•",
    365: "º΢",
    370: "ª",
    385: "ľ",
    389: "*r{}ŕŗř",
    400: "°",
    417: "г",
    445: "ξ",
    446: "τ",
    451: "έ",
    460: "ζ",
    474: '"',
    475: "ε",
    479: "ŀť",
    490: "т",
    494: "∂",
    497: "з",
    500: "zźżžк“”↑↓",
    520: "ς",
    541: "θ",
    549: "±÷≤≥≠√",
    552: "¯э",
    556: "#$0123456789J_aceksvxy¢£¤¥§«¶»àáâãäåçèéêëýÿāăąćĉċčēĕėęěĳĴķĸśŝşšŷγλνаесух–€",
    558: "κ",
    567: "Г",
    576: "µχ",
    581: "ч",
    582: "ΰυ",
    583: "я",
    584: "+<=>^~¬×−",
    600: "Σ",
    601: "Γ",
    604: "нп",
    606: "δ",
    610: "βК",
    611: "?FLTZbdghnopqu¿ßðñòóôõöøùúûüþđĝğġģĥħĹĻĽĿŁńņňŋōŏőŢŤŦũūŭůűųŹŻŽΖΤήηοТор",
    612: "μ∆",
    615: "άαвийць",
    618: "б",
    619: "ρ",
    622: "У",
    626: "З",
    635: "дл",
    644: "Ξ",
    667: "EPSVXYÈÉÊËÝÞĒĔĖĘĚŚŜŞŠŶŸΕΛΡΥΧΫЕРХ",
    684: "σ",
    702: "Л",
    703: "Ч",
    708: "ŉ",
    709: "ж",
    711: "Э",
    712: "Д",
    713: "∞∑",
    715: "φ",
    719: "ďΔБИЙПЬЯ",
    722: "&ABCDHKNRUÀÁÂÃÄÅÇÐÑÙÚÛÜĀĂĄĆĈĊČĎĐĤĦĶŃŅŇŔŖŘŨŪŬŮŰŲΑΒΗΚΝΠАВНС",
    723: "Ŋ",
    729: "ъ",
    730: "Ц",
    737: "©®",
    740: "м",
    753: "ψ",
    766: "π",
    778: "GOQwÒÓÔÕÖØĜĞĠĢŌŎŐŵΘΟО",
    785: "Ĳ",
    802: "Ω",
    809: "Ψ",
    821: "Φ",
    823: "∏",
    833: "MΜМш",
    834: "¼½¾",
    844: "щ",
    845: "ω",
    854: "Фыю",
    870: "Ъ",
    875: "ф",
    889: "%mæ",
    904: "Ж",
    944: "WœŴ",
    975: "@",
    979: "Ы",
    1000: "ÆŒ—…→←™",
    1005: "Ш",
    1019: "Щ",
    1031: "Ю",
}


def _by_character(table: dict[int, str]) -> dict[str, int]:
    return {char: width for width, chars in table.items() for char in chars}


_WIDTHS = {False: _by_character(_REGULAR), True: _by_character(_BOLD)}


def _unlisted(char: str) -> int:
    """A width for a character outside the table: generous, since a text must never leave its box."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 1000 if unicodedata.east_asian_width(char) in ("W", "F") or ord(char) > 0xFFFF else 800


def width(text: str, size: float, bold: bool = False) -> float:
    """Width of a line of text.

    Args:
        text: One line.
        size: Font size in px.
        bold: Whether it is set in bold.

    Returns:
        The width in px.

    Example:
        >>> width("conv1", 10)
        26.68
    """
    table = _WIDTHS[bold]
    total = 0
    for char in text:
        found = table.get(char)
        if found is None:
            found = table[char] = _unlisted(char)
        total += found
    return total * size / 1000


def fit(text: str, size: float, room: float, bold: bool = False) -> str:
    """The text, shortened with an ellipsis where it is wider than `room` px.

    The middle goes: names of modules differ at their ends.
    """
    if width(text, size, bold) <= room:
        return text
    low, high = 0, len(text)
    while low < high:  # the longest that fits
        keep = (low + high + 1) // 2
        short = text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]
        low, high = (keep, high) if width(short, size, bold) <= room else (low, keep - 1)
    return text[: (low + 1) // 2] + "…" + text[len(text) - low // 2 :]
