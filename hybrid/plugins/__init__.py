"""Tools, solvers, benchmarks and other plug-ins: how they are found and loaded, their weights and prompt texts."""
