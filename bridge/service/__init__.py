"""The planner's service: Thrift, plans in progress, admission."""
