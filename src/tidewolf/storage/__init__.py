"""Keep a session in an SQLite file: every observation, and from time to time the state, so that a
killed process resumes bit for bit.

    link_0 = sha256(settings)       link_k = sha256(link_{k-1} | event k)
        seal = sha256(link_m | the state after event m)

Whatever changes the state is an event: an observation, a decision whose feedback comes later, side
information of the next round. It is committed before the call returns: from then on it survives the
process, killed at whatever instruction, and, if the disk honours fsync, a power cut (write-ahead
log, flushed at every commit). One that was not acknowledged may be there too: `rounds` tells. To
open is to read and check every link, load the last state, and apply again what came after it, at
most `snapshot_every` events. What is applied is what comes back from the file, so that again gives
the same bits.

The links find accidents and careless edits, not a forger. What a learner needs of a round is kept
and no more: sums for first-order learners, values for bandits, the functions themselves, as kinds
and arrays, for those that need them.

`PATH` is the file; beside it lie `PATH-wal` and `PATH-shm` (SQLite's, part of the data until the
session is closed: copy them along) and `PATH-lock`, held by the one writer and let go by the system
when its process ends. In it stands how many events were acknowledged, so that a log that was
lost or cut short is noticed. Readers may look at any time.

A reader in a folder if it cannot write reads a copy: SQLite would make files beside the
database. `PATH` and `PATH-wal` are copied to a temporary folder, again where a writer changed them
meanwhile, so the reader sees all that was acknowledged before it opened. A file that is deleted or
replaced under its writer is noticed before the next observation, which is then refused: there is
nowhere to keep it.

    database            connections to SQLite, with statements that PostgreSQL has, too; the tables,
                        the same in both (docs/reference/formats.md), and the rows of one session
                        with their checks; the file of one session, locked by its one writer
    postgres            connections to PostgreSQL, and the servers that share a database: which
                        server holds which session
    journal             events as bytes: applied to a state, kept as they happen, and applied again
    session_store       many sessions in one database, in a folder; written in groups that share a
                        sync
    copies              backup and restore
"""

from tidewolf.storage.database import File
from tidewolf.storage.journal import Journal
from tidewolf.storage.session_store import SessionStore, backend

__all__ = ["File", "Journal", "SessionStore", "backend"]
