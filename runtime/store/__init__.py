"""The store: what must survive. SQLite by default, PostgreSQL by URL; SQLAlchemy Core, no objects mapped.

    store = open_store("sqlite:///run/store.db")      # or postgresql://user@host/database
    number = store.write(lambda connection: …)        # one transaction, durable when it returns
    rows = store.read(lambda connection: …)           # what is committed now
    store.close()

On SQLite a store has one writer thread: transactions that wait for it at the same time are committed together, with one
sync of the disk. Any number of processes may open the same file; each waits for its turn at a lock file.
"""

from runtime.store.store import Store, StoreBusy, StoreTooNew, open_store

__all__ = ["Store", "StoreBusy", "StoreTooNew", "open_store"]
