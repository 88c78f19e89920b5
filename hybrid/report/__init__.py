"""Pages that a browser shows from disk or from a server: `hybrid report RUN -o site`, `hybrid view RUN`."""
