"""Models whose server this program starts: `vllm:NAME`, `sglang:NAME`, `llamacpp:FILE_OR_REPO`.

    MODEL = partial(open_served, VLLM)          # a file of hybrid/models/providers

The server starts with the first request, on its own port, and ends with the program, however the program ends
(`watcher.py`). All models of one process with the same name and arguments share one server. `commands.py` writes the
command line, with the parsers of `families.toml`; `process.py` starts and ends it.
"""
