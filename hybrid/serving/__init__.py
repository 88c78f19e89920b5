"""The service that runs tools: executors, batching, worker process, loader, weights, known answers, cache."""
