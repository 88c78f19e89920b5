"""One ask: the solver's context and the session that builds it, budgets, controls, coordinates, image forms, trust."""
