"""One ask: the kit, the session that builds it, budgets, controls, frames, image forms, trust."""
