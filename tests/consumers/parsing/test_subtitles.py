"""Subtitles are read as the text of a talk, and a passage has the time at which it begins."""

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings

SRT = """1
00:00:01,000 --> 00:00:04,000
<i>The mill</i> stands
at the weir.

2
01:02:03,500 --> 01:02:05,000
{\\an8}It turns.
"""
VTT = """WEBVTT - A talk

00:01.000 --> 00:04.000 align:start
<v Ada>The mill stands &amp; turns.

00:04.000 --> 00:06.000
<v Ada>The mill stands &amp; turns.
Since 1790.
"""


def test_subrip_cues_give_passages_with_times() -> None:
    settings = SplitSettings(max_tokens=9, min_tokens=0)
    [document] = parse_data(SRT.encode(), b"talk.srt", "file:///talk.srt", settings)
    assert [(passage.text, passage.location) for passage in document.passages] == [
        ("The mill stands\nat the weir.", {"time": "0:00:01"}),
        ("It turns.", {"time": "1:02:03"}),
    ]


def test_webvtt_keeps_voices_and_drops_repeated_lines() -> None:
    [document] = parse_data(VTT.encode(), b"talk.vtt", "file:///talk.vtt", SplitSettings())
    assert (document.title, document.metadata["format"]) == ("A talk", "subtitles")
    assert [passage.text for passage in document.passages] == ["Ada: The mill stands & turns.\nSince 1790."]
    assert document.left_out == ()
