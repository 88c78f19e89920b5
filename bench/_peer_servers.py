"""Servers of one network for `bench.peers`: POST /predict with JPEG files in base64, and the reply is a number.

    python -m bench._peer_servers http depth --checkpoint FOLDER --port 8100
    python -m bench._peer_servers litserve depth --checkpoint FOLDER --port 8100     # needs litserve

`http` answers one request after the other, as the tool servers of an agent usually do; `litserve` is a `LitServer` that
batches up to eight waiting requests.
"""

from __future__ import annotations

from pathlib import Path

from bench._frame import options
from bench._peer_network import WORK, PeerNetwork, read_images

HOST = "127.0.0.1"


def serve_http(network: PeerNetwork, port: int) -> None:
    """Serve a network with aiohttp; its event loop runs the network."""
    from aiohttp import web

    async def predict(request: web.Request) -> web.Response:
        return web.json_response({"value": network.run(*network.prepare([read_images(await request.json())]))[0]})

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application(client_max_size=2**26)
    app.add_routes([web.post("/predict", predict), web.get("/health", health)])
    web.run_app(app, host=HOST, port=port, print=None)


def serve_litserve(name: str, checkpoint: Path, port: int) -> None:
    """Serve a network with LitServe; its worker process loads it."""
    import litserve

    from bench._litserve_api import Predictor

    # LitServe 0.2.19 fails where `mcp` is installed and `fastmcp` is not.
    vars(litserve.server)["_MCP_AVAILABLE"] = False
    server = litserve.LitServer(Predictor(name, checkpoint), accelerator="cpu")
    server.run(host=HOST, port=port, generate_client_file=False, log_level="warning")


def main() -> None:
    """Run one server until it is killed."""
    flags = {"server": ("http", "litserve"), "work": tuple(WORK), "--checkpoint": ..., "--port": int}
    arguments = options(__doc__, flags)
    name = WORK[arguments.work]
    if arguments.server == "http":
        serve_http(PeerNetwork(name, arguments.checkpoint), arguments.port)
    else:
        serve_litserve(name, arguments.checkpoint, arguments.port)


if __name__ == "__main__":
    main()
