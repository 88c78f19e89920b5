"""The API of a LitServe server of one network; its worker process imports this module, which needs litserve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import litserve

from bench._peer_network import BATCH, PeerNetwork, read_images
from hybrid.tool import Pixels

# Seconds that LitServe waits for a batch to fill up.
BATCH_TIMEOUT_S = 0.02


class Predictor(litserve.LitAPI):
    """Decodes each request, and runs the network on up to `BATCH` of them."""

    def __init__(self, name: str, checkpoint: Path) -> None:
        super().__init__(max_batch_size=BATCH, batch_timeout=BATCH_TIMEOUT_S)
        self.name, self.checkpoint = name, checkpoint

    def setup(self, device: str) -> None:
        """Load the network."""
        self.network = PeerNetwork(self.name, self.checkpoint)

    # Without annotations, like `encode_response`: LitServe would take them for FastAPI's types of request and response.
    def decode_request(self, request):  # type: ignore[no-untyped-def]
        """Return the images of a request."""
        return read_images(request)

    def batch(self, inputs: Sequence[list[Pixels]]) -> list[list[Pixels]]:
        """Return the requests as they are; the processor makes a tensor of them."""
        return list(inputs)

    def predict(self, x: list[list[Pixels]]) -> list[float]:
        """Return an answer per request."""
        return self.network.run(*self.network.prepare(x))

    def unbatch(self, output: list[float]) -> list[float]:
        """Return the answers."""
        return output

    def encode_response(self, output):  # type: ignore[no-untyped-def]
        """Return an answer as JSON."""
        return {"value": output}
