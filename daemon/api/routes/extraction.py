"""`POST /v1/reextract`, `POST /v1/backfill`, `GET /v1/extraction`, `POST /v1/reencode` and `GET /v1/costs`."""

from daemon.api.access.rights import Need
from daemon.api.endpoints import Endpoints
from daemon.api.ports import MemoryPorts
from daemon.contract.costs import CostsRequest, CostsResponse
from daemon.contract.http.routes import Route
from daemon.contract.status import ExtractionResponse, ReencodeResponse, ReextractRequest


def add_routes(endpoints: Endpoints) -> None:
    @endpoints.add("POST", Route.REEXTRACT, Need.ADMIN, 409, body_required=False, releases_body=True)
    async def reextract(ports: MemoryPorts, wanted: ReextractRequest) -> ExtractionResponse:
        """Extract triples again from passages that another extractor has read."""
        return await ports.extractions.reextract(wanted.dry_run)

    @endpoints.add("POST", Route.BACKFILL, Need.ADMIN, 409)
    async def backfill(ports: MemoryPorts) -> ExtractionResponse:
        """Read everything that waits with the in-process model."""
        return await ports.extractions.backfill()

    @endpoints.add("GET", Route.EXTRACTION, Need.ADMIN, 409)
    async def extraction(ports: MemoryPorts) -> ExtractionResponse:
        """Progress and cost of extraction."""
        return await ports.extractions.status()

    @endpoints.add("GET", Route.COSTS, Need.ADMIN)
    async def costs(ports: MemoryPorts, wanted: CostsRequest) -> CostsResponse:
        """Tokens and money of model calls, by day, source and purpose."""
        return await ports.extractions.costs(wanted)

    @endpoints.add("POST", Route.REENCODE, Need.ADMIN, 409, 502)
    async def reencode(ports: MemoryPorts) -> ReencodeResponse:
        """Replace all vectors by those of the configured encoder, and the remaining work."""
        return await ports.reencoding.reencode()
