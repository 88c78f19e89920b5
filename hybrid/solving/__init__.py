"""Everything for one request to a solver: session, context, budgets, controls, coordinates, image forms and trust."""
