"""Passes one server's traffic on, its answers at a limited number of bytes a second."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

PIECE_BYTES = 100


@contextmanager
def throttled(url: str, bytes_per_s: float) -> Iterator[str]:
    """Yields an address that leads to the server at `url`."""
    target = urlsplit(url)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause_s: float) -> None:
        try:
            while piece := await reader.read(PIECE_BYTES if pause_s else 65536):
                await asyncio.sleep(pause_s * len(piece) / PIECE_BYTES)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(pump(reader, to_server, 0), pump(from_server, writer, PIECE_BYTES / bytes_per_s))

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(serve, "127.0.0.1", 0), loop).result(20)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{target.path}"
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
