"""A language model as the policy: prompts, scoring and generating calls, adapters, saving."""
