"""Where tools run: service, batching, worker, loader, weights, known answers, cache."""
