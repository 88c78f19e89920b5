"""Everything for one ask: session, solver context, budgets, controls, coordinates, image forms and trust."""
