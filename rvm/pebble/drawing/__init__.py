"""Pictures of schedules and of what budgets cost: as text, and as SVG."""
