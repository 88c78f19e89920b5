"""Loops without `hybrid`, to compare with the run loop: the same questions, images and number in flight.

    python -m bench._bare_clients aiohttp --url URL --questions FOLDER --in-flight 64 --out FILE

Clients: aiohttp, aiohttp-crop, openai, langgraph, langgraph-graph. Each appends one line per answer and stores nothing
else. Those that crop enlarge it to 768 px and send it like our tool, as a JPEG of quality 95 without subsampled
colours. `langgraph` is LangGraph's prebuilt `create_agent`, and `langgraph-graph` a `StateGraph` with a node for the
model and one for the tool. Annotations are evaluated in this module, because LangChain reads those of a tool.
"""

import asyncio
import base64
import io
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench._frame import options

# Takes a prompt and the data URL of its picture; returns the answer.
Ask = Callable[[str, str], Awaitable[str]]
KEY = "not-a-key"
_BOX = {"type": "object", "additionalProperties": {"type": "integer"}}
_ARGUMENTS = {"images": {"type": "array", "items": {"type": "string"}}, "box": _BOX}
_PARAMETERS = {"type": "object", "properties": _ARGUMENTS, "required": ["images", "box"]}
_CROP = {"name": "crop", "description": "Enlarge a region of an image.", "parameters": _PARAMETERS}
CROP_SCHEMA = {"type": "function", "function": _CROP}


@dataclass(frozen=True)
class ClientPicture:
    """The image of the question, as a data URL: the context of the tool."""

    url: str


def content(prompt: str, picture: str) -> list[dict[str, Any]]:
    """Return the parts of a user message."""
    return [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": prompt}]


async def with_aiohttp(url: str, run: Callable[[Ask], Awaitable[None]], **offers: Any) -> None:
    """Send one POST per question; with a tool, the first reply calls `crop` and a second request sends its result."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {KEY}"}) as session:

        async def ask_server(messages: list[dict[str, Any]]) -> dict[str, Any]:
            body = {"model": "mock", "messages": messages, **offers}
            async with session.post(f"{url}/chat/completions", json=body) as reply:
                return dict((await reply.json())["choices"][0]["message"])

        async def ask(prompt: str, picture: str) -> str:
            messages: list[dict[str, Any]] = [{"role": "user", "content": content(prompt, picture)}]
            message = await ask_server(messages)
            for call in message.get("tool_calls", ()):
                box = json.loads(call["function"]["arguments"])["box"]
                part = await asyncio.to_thread(jpeg_of, picture, box)
                messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "img:1 enlarged"}]
                messages.append({"role": "user", "content": content("img:1.1", part)})
                message = await ask_server(messages)
            return str(message["content"])

        await run(ask)


async def with_openai(url: str, run: Callable[[Ask], Awaitable[None]]) -> None:
    """Ask with OpenAI's own client."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key=KEY) as client:

        async def ask(prompt: str, picture: str) -> str:
            messages: Any = [{"role": "user", "content": content(prompt, picture)}]
            reply = await client.chat.completions.create(model="mock", messages=messages)
            return reply.choices[0].message.content or ""

        await run(ask)


async def with_langgraph(url: str, run: Callable[[Ask], Awaitable[None]]) -> None:
    """Ask with LangGraph's prebuilt loop of a model and a tool that crops the image."""
    from langchain.agents import create_agent
    from langchain.tools import ToolRuntime, tool
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI

    @tool
    def crop(images: list[str], box: dict[str, int], runtime: ToolRuntime[ClientPicture]) -> list[dict[str, Any]]:
        """Enlarge a region of an image."""
        return content(f"{images[0]} enlarged", jpeg_of(runtime.context.url, box))

    key: Any = KEY
    agent = create_agent(ChatOpenAI(model="mock", base_url=url, api_key=key), [crop], context_schema=ClientPicture)

    async def ask(prompt: str, picture: str) -> str:
        opening: Any = {"messages": [HumanMessage(content(prompt, picture))]}  # type: ignore[arg-type]
        final: Any = await agent.ainvoke(opening, context=ClientPicture(picture))
        return str(final["messages"][-1].content)

    await run(ask)


async def with_langgraph_graph(url: str, run: Callable[[Ask], Awaitable[None]]) -> None:
    """Ask with a graph of two nodes: LangChain's client of OpenAI, and a function that crops the image in a thread."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph

    class State(MessagesState):
        picture: str

    key: Any = KEY
    model = ChatOpenAI(model="mock", base_url=url, api_key=key).bind_tools([CROP_SCHEMA])

    async def ask_model(state: State) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def crop(state: State) -> dict[str, Any]:
        (call,) = state["messages"][-1].tool_calls
        part = await asyncio.to_thread(jpeg_of, state["picture"], call["args"]["box"])
        enlargement: Any = content(f"{call['args']['images'][0]} enlarged", part)
        return {"messages": [ToolMessage(enlargement, tool_call_id=call["id"])]}

    def route(state: State) -> str:
        last = state["messages"][-1]
        return "crop" if isinstance(last, AIMessage) and last.tool_calls else END

    graph = StateGraph(State)
    graph.add_node("model", ask_model)
    graph.add_node("crop", crop)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", route, ["crop", END])
    graph.add_edge("crop", "model")
    agent: Any = graph.compile()

    async def ask(prompt: str, picture: str) -> str:
        opening: Any = HumanMessage(content(prompt, picture))  # type: ignore[arg-type]
        final = await agent.ainvoke({"messages": [opening], "picture": picture})
        return str(final["messages"][-1].content)

    await run(ask)


def enlarged(data: bytes, box: Mapping[str, int]) -> Any:
    """Crop a box out of an image file and enlarge it to a longer side of about 768 px; return a Pillow image."""
    from PIL import Image

    part = Image.open(io.BytesIO(data)).crop((box["x0"], box["y0"], box["x1"], box["y1"]))
    scale = min(8.0, 768 / max(part.size))
    return part.resize((round(part.width * scale), round(part.height * scale)), Image.Resampling.LANCZOS)


def encoded(image: Any) -> bytes:
    """Return a JPEG file of an image, with the JPEG quality of our tools."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()


def jpeg_of(picture: str, box: Mapping[str, int]) -> str:
    """Crop and enlarge a box of an image; return it as a data URL."""
    return data_url(encoded(enlarged(base64.b64decode(picture.partition(",")[2]), box)), "jpeg")


def data_url(data: bytes, kind: str) -> str:
    """Return an image file as a data URL."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


CLIENTS = {
    "aiohttp": with_aiohttp,
    "aiohttp-crop": partial(with_aiohttp, tools=[CROP_SCHEMA]),
    "openai": with_openai,
    "langgraph": with_langgraph,
    "langgraph-graph": with_langgraph_graph,
}


async def answer_all(client: str, url: str, folder: Path, in_flight: int, out: Path) -> None:
    """Ask every question of the folder, `in_flight` at once, and write the answers as they come."""
    rows = iter([json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()])
    with out.open("w") as file:

        async def run(ask: Ask) -> None:
            async def worker() -> None:
                for row in rows:
                    picture = data_url((folder / f"{row['number']}.jpg").read_bytes(), "jpeg")
                    answer = await ask(row["prompt"], picture)
                    file.write(json.dumps({"number": row["number"], "answer": answer}) + "\n")

            await asyncio.gather(*(worker() for _ in range(in_flight)))

        await CLIENTS[client](url, run)


def main() -> None:
    """Run one client."""
    flags = options(
        __doc__, {"client": tuple(CLIENTS), "--url": str, "--questions": ..., "--in-flight": 64, "--out": ...}
    )
    asyncio.run(answer_all(flags.client, flags.url, flags.questions, flags.in_flight, flags.out))


if __name__ == "__main__":
    main()
