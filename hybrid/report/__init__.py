"""Report pages for a browser, from disk or from a server: `hybrid report RUN -o site`, `hybrid view RUN`."""
