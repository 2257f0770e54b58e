"""`reencode` on a terminal: what is encoded anew, how long it takes, and what it needs on the disk."""

from cli.render.lines import HEADING, text
from cli.render.styled_text import Text
from cli.terminal_text import count, duration, size
from daemon.contract.status import ReencodeResponse


def reencoding_lines(first: ReencodeResponse, last: ReencodeResponse) -> list[Text]:
    if first.configured is None:
        return [text((first.encoder, HEADING), ": the content is encoded as configured; nothing to do")]
    if not last.running:
        # `first` counts the texts that were left when it was written, perhaps fewer than all.
        return [text((last.encoder, HEADING), ": everything is encoded anew; queries use the new vectors")]
    left = f", in about {duration(last.left_s)}" if last.left_s else ""
    calls = f", with at least {count(last.calls, 'call')}" if last.calls else ""
    waits = f"; waiting: {last.error}" if last.error else ""
    work = f"{count(last.texts, 'text')} of {count(last.passages, 'passage')} to encode{left}{calls}"
    return [text((first.configured, HEADING), f": {work}; it takes up to {size(last.disk_bytes)} on the disk{waits}")]
