"""Teams, roles and tools that were written for something else: OpenAI tool specs, LangGraph graphs, OpenAI agents."""
