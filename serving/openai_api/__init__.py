"""What speaks OpenAI's protocol: roles that a language model plays, as models that any client of theirs can ask."""
