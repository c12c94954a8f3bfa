"""Tools beyond the plain function: with time limits, idempotency keys and undo, from MCP servers, from databases."""
