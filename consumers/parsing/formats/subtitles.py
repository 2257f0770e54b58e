"""Subtitles: SubRip (.srt) and WebVTT (.vtt). The text of each cue, with the cue's start in the passage's location."""

import html
import re

from consumers.omissions import OmissionKind
from consumers.parsing.formats.text import text_parser
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_TIMES = re.compile(r"[ \t]*((?:\d+:)?\d{1,2}:\d{2})[.,]\d{1,3}[ \t]+-->[ \t]+(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}(.*)")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]+([^<>]+)>")
_TAG = re.compile(r"</?(?:[bicuv]|ruby|rt|font|lang)(?:[.\s][^<>]*)?>|<\d[\d:.]*>|\{\\[^{}]*\}")
_NUMBER = re.compile(r"\d+")
_SETTING = re.compile(r"(?:vertical|line|position|size|align|region|[XY]\d):\S+")
_LEFT_OUT = {"NOTE": OmissionKind.COMMENT, "STYLE": OmissionKind.METADATA, "REGION": OmissionKind.METADATA}


@text_parser
def parse_subtitles(text: str, outline: Outline) -> ParsedText:
    omissions = outline.omissions
    title, last = "", ""
    blocks = re.split(r"\n[ \t]*\n", text.strip())
    for number, block in enumerate(blocks):
        lines = [line.strip() for line in block.split("\n") if line.strip()]
        if number == 0 and lines and lines[0].startswith("WEBVTT"):
            title = lines.pop(0).removeprefix("WEBVTT").strip(" \t-:")
            for line in lines if not any(_TIMES.match(line) for line in lines) else ():
                omissions.add(OmissionKind.METADATA, line)
        at = next((at for at, line in enumerate(lines) if _TIMES.match(line)), None)
        word = lines[0].split()[0] if lines else ""
        if at is None and word in _LEFT_OUT:
            omissions.add(_LEFT_OUT[word], " ".join((lines[0].removeprefix(word), *lines[1:])))
        elif at is None:
            if number or not title:
                outline.text("\n".join(map(_plain, lines)))
        else:
            times = _TIMES.match(lines[at])
            assert times is not None
            for line in (*lines[:at], _SETTING.sub("", times[2]).strip()):
                if line and not _NUMBER.fullmatch(line):
                    omissions.add(OmissionKind.METADATA, line)
            cue = list(map(_plain, lines[at + 1 :]))
            if cue and cue[0] == last:  # scrolling captions repeat the last line
                cue = cue[1:]
            outline.text("\n".join(cue), "\n", time=_time(times[1]))
            last = cue[-1] if cue else last
    return ParsedText(outline.done(), title)


def _plain(line: str) -> str:
    """Returns a line without markup. The speaker in a voice tag becomes "Name: "."""
    return html.unescape(_TAG.sub("", _VOICE.sub(r"\1: ", line))).strip()


def _time(stated: str) -> str:
    """Returns a time as `hours:minutes:seconds`."""
    *hours, minutes, seconds = stated.split(":")
    return f"{int(hours[0]) if hours else 0}:{int(minutes):02}:{seconds}"
