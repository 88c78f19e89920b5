"""The tool server: a process that loads networks once, for all runs and programs that share a cache folder.

hybrid tools up --tools depth,detection      # `process.py`: a worker process behind a Unix socket (`address.py`)
SharedTools(executor, cache, options)        # `attached.py`: uses the server for the tools that match, see `facts.py`
"""
