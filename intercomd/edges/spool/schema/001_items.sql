-- What survives a restart of the broker: parked children, their input, kept asks, their replies, dead letters.
--
-- One table for all of them: what is in an item is the core's business, this file's is that it is there again, in the
-- order in which it was stored. Bodies are kept as the bytes that will be forwarded.

CREATE TABLE item (
    -- The order of storing. An item that is stored again under its key keeps its place.
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The core's name for it, never used for another one.
    key     TEXT NOT NULL UNIQUE,
    -- child, input, ask, reply or letter.
    kind    TEXT NOT NULL,
    -- A JSON object in UTF-8. A BLOB, since a lone surrogate's escape must come back as it was.
    facts   BLOB NOT NULL CHECK (typeof(facts) = 'blob'),
    -- The sender's row and the message, as JSON bytes; empty where an item has none.
    row     BLOB NOT NULL CHECK (typeof(row) = 'blob'),
    message BLOB NOT NULL CHECK (typeof(message) = 'blob')
);
