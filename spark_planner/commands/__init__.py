"""The planner's commands: plan, check-plan."""
