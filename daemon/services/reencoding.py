"""`reencode`: encodes all content with another encoder in the background, and switches to that encoder.

The old vectors answer queries until the switch. hippod may end at any moment: the new vectors stay in the store's folder
(`store.reencode.new_vectors`), and the next start continues.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import structlog

from daemon.contract.http.routes import Need, Route, served
from daemon.contract.status import PassageShare, ReencodeResponse, Unapplied
from daemon.errors import Conflict, RequestError, UpstreamFailed
from daemon.pipeline.backpressure import until_idle
from daemon.pipeline.commit.committer import Committer
from daemon.pipeline.outage import Dependency
from daemon.pipeline.uninterrupted import finish_even_if_cancelled
from daemon.services.progress import LongTask, ProgressBoard
from memory.batch_encoding import SliceSize, triple_text
from memory.encoder.errors import EncoderRefused, EncoderUnavailable
from memory.types import Encoder, Matrix
from store.fixed_point import fixed
from store.index.live_index import KINDS
from store.reencode.new_vectors import NewVectors, Target, TextsToEncode, discard, free_bytes, needed_bytes, target_of
from store.reencode.switch import NewEncoder
from store.store import Store
from store.types import Calibration, SynonymRule

IDLE_CHECK_S = 0.1
MAX_WAIT_S = 2.0
"""Maximum wait of a slice of texts for a moment without queries and new documents: a busy machine may have none."""
MAX_PAUSE_S = 30.0
"""Maximum pause after an error, such as an unreachable server or a full disk."""
SWITCH_BELOW_TEXTS = 512
"""If fewer texts remain, commits wait until these texts are encoded and the encoder is switched."""
FIRST_RATE_S = 2.0
"""Time that an answer waits for the first encoded texts, from which the remaining time is estimated."""
COMMAND = "hippoctl reencode"

Result = TypeVar("Result")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ConfiguredEncoder:
    """The encoder in the configuration. `name` and `content` are display names: of this encoder, and of the encoder that made
    the content. `load` takes seconds."""

    encoder: str
    name: str
    content: str
    load: Callable[[], tuple[Encoder, Calibration, SynonymRule]]
    prefix_key: str
    """Position in the store that contains the prefix of the texts."""
    batch_size: int


Switched = Callable[[Encoder, Calibration, int], None]
"""Makes all parts use the new encoder, beginning with the commit of the given number. Called in a thread while commits wait."""


class Reencoding:
    """Serves `POST /v1/reencode`. Use on the event loop only."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        progress: ProgressBoard,
        configured: ConfiguredEncoder | None,
        switched: Switched,
        busy: Callable[[], bool],
    ) -> None:
        """`configured`: None if the configured encoder made the content. `busy` returns whether other work is in progress."""
        self._store = store
        self._committer = committer
        self._progress = progress
        self._configured = configured
        self._switched = switched
        self._busy = busy
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reencode")
        self._loaded: tuple[Encoder, Calibration, SynonymRule] | None = None
        self._task: asyncio.Task[None] | None = None
        self._measured = asyncio.Event()
        self._switching = False
        self._encoded = 0
        self._needed_bytes = 0
        self._needed = Dependency(MAX_PAUSE_S)
        """Tracks outages of the encoder, its server and the disk."""

    def resume(self) -> None:
        """Continues the work of an earlier run, or deletes its vectors if the configuration no longer names that encoder."""
        target = target_of(self._store.folder)
        if target is None:
            return
        if self._configured is not None and target.encoder == self._configured.encoder:
            self._begin()
        else:
            discard(self._store.folder)
            log.info("reencoding_discarded", encoder=target.encoder)

    async def begin(self) -> None:
        """Begins or continues; logs the reason if that is impossible."""
        try:
            await self.reencode()
        except RequestError as error:
            log.error("reencoding_refused", error=error.detail)

    @served("POST", Route.REENCODE, Need.ADMIN, 409, 502)
    async def reencode(self) -> ReencodeResponse:
        """Replace all vectors by those of the configured encoder, and report the remaining work.

        Begins if the content is not as configured. Raises Conflict if the disk has too little space, and UpstreamFailed if the
        encoder cannot be loaded.
        """
        if self._configured is not None and not self._running:
            await self._require_space()
            self._begin()
        if self._running:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._measured.wait(), FIRST_RATE_S)
        return self._answer()

    async def stop(self) -> None:
        """Ends the work; finishes a switch that has begun."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._thread.shutdown(wait=False, cancel_futures=True)

    # Reports.

    @property
    def _running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def unapplied(self) -> list[Unapplied]:
        """Configured values that the content does not follow yet."""
        if self._configured is None:
            return []
        return [
            Unapplied(
                setting="encoder", content=self._configured.content, configured=self._configured.name, command=COMMAND
            )
        ]

    def shares(self) -> list[PassageShare]:
        """Returns the number of passages by encoder, with the remaining time for passages without a new vector."""
        passages, encoder = self._store.snapshot().living_passages, self._committer.encoder.identity.name
        if self._configured is None or not self._running:
            return [PassageShare(name=encoder, passages=passages)]
        texts = max(self._texts(), 1)
        done = passages * min(self._encoded, texts) // texts
        return [
            PassageShare(name=encoder, passages=passages - done, left_s=self._left_s()),
            PassageShare(name=self._configured.encoder, passages=done),
        ]

    def _texts(self) -> int:
        """Returns the number of texts with a vector, including those not in use."""
        snapshot = self._store.snapshot()
        return snapshot.n_passages + snapshot.n_phrases + int(np.count_nonzero(snapshot.is_statement))

    def _left_s(self) -> float | None:
        progress = [each for each in self._progress.current() if each.task == "reencode"]
        return progress[0].left_s if progress else None

    def _answer(self) -> ReencodeResponse:
        passages = sum(each.passages for each in self.shares()[:1]) if self._configured is not None else 0
        texts = max(self._texts() - self._encoded, 0) if self._configured is not None else 0
        remote = self._loaded is not None and self._configured is not None and self._loaded[0].remote
        return ReencodeResponse(
            encoder=self._committer.encoder.identity.name,
            configured=None if self._configured is None else self._configured.name,
            running=self._running,
            error=None if (outage := self._needed.outage) is None else outage.loggable,  # a server may quote documents
            passages=passages,
            texts=texts,
            calls=-(-texts // self._configured.batch_size) if remote and self._configured is not None else 0,
            left_s=self._left_s(),
            disk_bytes=self._needed_bytes if self._configured is not None else 0,
        )

    # The work.

    async def _load(self) -> tuple[Encoder, Calibration, SynonymRule]:
        assert self._configured is not None
        if self._loaded is None:
            self._loaded = await asyncio.to_thread(self._configured.load)
        return self._loaded

    async def _require_space(self) -> None:
        """Loads the encoder and checks the disk space. Raises Conflict or UpstreamFailed."""
        try:
            encoder, _, _ = await self._load()
        except EncoderUnavailable as error:
            raise UpstreamFailed(str(error)) from error
        folder, dims = self._store.folder, (self._store.snapshot().dim, encoder.identity.dim)
        self._needed_bytes = await asyncio.to_thread(needed_bytes, folder, self._texts(), self._encoded, *dims)
        if (free := free_bytes(folder)) < self._needed_bytes:
            raise Conflict(
                f"encoding again needs {self._needed_bytes:,} bytes on the disk of the memory, which has {free:,} left: make "
                "room, then repeat the command"
            )

    def _begin(self) -> None:
        if not self._running:  # another request may have started the work meanwhile
            self._measured.clear()
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._configured is not None:
            try:
                await self._encode_and_switch()
            except (EncoderUnavailable, RequestError) as error:
                await self._needed.wait("reencoding_waits", error)
            except Exception as error:  # noqa: BLE001 - the next try or start continues the work; other work must not stop
                await self._needed.wait("reencoding_failed", error, exc_info=True)

    async def _encode_and_switch(self) -> None:
        encoder, calibration, rule = await self._load()
        target = Target(encoder.identity.name, encoder.identity.dim, encoder.passage_prefix)
        vectors = await self._in_thread(NewVectors, self._store.folder, target)
        self._encoded, self._switching = len(vectors), False
        done: dict[str, int] = {}
        try:
            await self._require_space()
            with self._progress.running("reencode", "texts", partial(self._refresh, vectors)) as report:
                log.info("reencoding_began", encoder=target.encoder, texts=self._texts(), encoded=len(vectors))
                while await self._encode_all(encoder, vectors, done, wait=True) >= SWITCH_BELOW_TEXTS:
                    pass
                async with self._committer.paused():
                    await self._encode_all(encoder, vectors, done, wait=False)
                    self._switching = True
                    report.update("switch", 0, None)
                    await self._switch(NewEncoder(vectors, calibration, rule), encoder)
        finally:
            await self._in_thread(vectors.close)
        log.info("reencoded", encoder=target.encoder, commit=self._store.snapshot().commit)
        self._configured = self._loaded = None
        self._needed.restored()
        self._measured.set()
        await finish_even_if_cancelled(asyncio.to_thread(self._tidy_up))

    def _tidy_up(self) -> None:
        """Deletes the new vectors, which the store contains now. If hippod ends before the deletion, the next start deletes
        them."""
        discard(self._store.folder)
        self._store.write_checkpoint()

    async def _switch(self, new: NewEncoder, encoder: Encoder) -> None:
        assert self._configured is not None
        kept = {self._configured.prefix_key: encoder.passage_prefix}
        new = NewEncoder(new.vectors, new.calibration, new.rule, kept)
        announce = partial(self._switched, encoder, new.calibration)
        await finish_even_if_cancelled(asyncio.to_thread(self._store.switch_encoder, new, announce))

    def _refresh(self, vectors: NewVectors, task: LongTask) -> None:
        if not self._switching:
            task.update("encode", len(vectors), max(self._texts(), len(vectors)))

    async def _encode_all(self, encoder: Encoder, vectors: NewVectors, done: dict[str, int], wait: bool) -> int:
        """Encodes the texts without a new vector; returns their number. With `wait`, lets other work run first.

        `done` maps each table to its first row that may lack a new vector; this method updates it.
        """
        count, size = 0, SliceSize()
        for kind in KINDS:
            find = partial(self._in_thread, self._store.texts_to_encode, kind)
            while (found := await find(done.get(kind, 0), vectors)) is not None:
                for part in _slices(found, size):
                    if wait:
                        await until_idle(self._busy, IDLE_CHECK_S, MAX_WAIT_S)
                    began = asyncio.get_running_loop().time()
                    await self._in_thread(_encode, encoder, vectors, part)
                    size.adapt(asyncio.get_running_loop().time() - began, full=True)
                    count += len(part.keys)
                    self._encoded = len(vectors)
                    self._needed.restored()
                    self._measured.set()
                done[kind] = found.after
        return count

    def _in_thread(self, work: Callable[..., Result], *arguments: object) -> Awaitable[Result]:
        """Runs `work` in the only thread that uses the vectors."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


def _slices(found: TextsToEncode, size: SliceSize) -> Iterator[TextsToEncode]:
    """Yields slices of the texts, of about `size.chars` characters each."""
    lengths = [*(len(each.full) for each in found.passages), *map(len, found.phrases)]
    lengths += [sum(map(len, each)) for each in found.triples]
    first = 0
    while first < len(lengths):
        after, chars = first + 1, lengths[first]
        while after < len(lengths) and chars + lengths[after] <= size.chars:
            chars += lengths[after]
            after += 1
        part = slice(first, after)
        yield TextsToEncode(
            found.after, found.keys[part], found.passages[part], found.phrases[part], found.triples[part]
        )
        first = after


def _encode(encoder: Encoder, vectors: NewVectors, found: TextsToEncode) -> None:
    encode = encoder.encode if found.phrases else encoder.encode_low_precision
    texts = [*(each.full for each in found.passages), *found.phrases, *map(triple_text, found.triples)]
    vectors.add(found.keys, fixed(_encoded(encode, encoder.identity.dim, texts)))


def _encoded(encode: Callable[[Sequence[str]], Matrix], dim: int, texts: Sequence[str]) -> Matrix:
    """Encodes texts. A text that the server refuses gets the zero vector; queries then find it only by its words."""
    try:
        return encode(texts)
    except EncoderRefused as error:
        if len(texts) == 1:
            log.warning("text_refused", error=error.loggable)
            return np.zeros((1, dim), np.float32)
        return np.concatenate([_encoded(encode, dim, [text]) for text in texts])
