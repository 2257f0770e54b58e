"""WebVTT: the places are cited by sections of the W3C's specification."""

from tests.consumers.parsing.conservation.places import text_table

CUE = "00:01.000 --> 00:02.000"
BODY = {
    "note": ("4.1", "NOTE The {}"),
    "note of several lines": ("4.1", "NOTE\nThe\n{}"),
    "style": ("4.1", "STYLE\n::cue({}) { color: red }"),
    "region": ("4.3", "REGION\nid:{}"),
    "cue": ("4.1", f"{CUE}\nThe {{}} turns."),
    "second line": ("4.1", f"{CUE}\nThe mill\n{{}}"),
    "name of a cue": ("4.1", f"{{}}\n{CUE}\nThe wheel."),
    "setting of a cue": ("4.4", f"{CUE} {{}}\nThe wheel."),
    "bold text": ("4.2.2", f"{CUE}\n<b.loud>{{}}</b>"),
    "voice": ("4.2.2", f"{CUE}\n<v {{}}>It turns.</v>"),
    "text with an entity": ("4.2.2", f"{CUE}\nWheels &amp; {{}}"),
    "karaoke": ("4.2.2", f"{CUE}\nThe <00:01.500><c>{{}}</c>"),
    "text in angle brackets": ("4.2.2", f"{CUE}\nThe <{{}} turns."),
    "text without times": ("4.1", "The {} turns."),
    "cue with hours": ("4.1", "100:00:01.000 --> 100:00:02.000\n{}"),
    "SubRip": ("SubRip", "12\n00:00:01,000 --> 00:00:02,000\n{\\\\an8}<font color='red'>{}</font>"),
}

HEAD = {"title": ("4.1", "WEBVTT - The {}")}

TABLE = text_table("talk.vtt", "WebVTT", BODY, head=HEAD, between=(f"{CUE}\nThe mill stands.", ""))
