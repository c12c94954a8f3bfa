"""Who says which role is next: Temporal, in place of the event bus, where somebody runs it anyway.

The bus needs none: inbox and outbox are in the store. Here a session is a workflow, and a role's turn an activity that
tells the role's agent an event. Agents, their store and their records are the same.
"""
