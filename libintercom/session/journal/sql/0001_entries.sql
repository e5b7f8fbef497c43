-- Schema 1. One database per native session. Loaded by libintercom.session.journal.schema in one transaction.

-- Names and values about the journal itself:
--   native_id  whose journal this is; a file under a wrong name is not adopted
--   folded     every entry up to this number is in the table "messages"
--   trimmed    finished messages whose last entry is not beyond this number have lost their texts (absent: none)
CREATE TABLE facts (
    name TEXT PRIMARY KEY NOT NULL,
    value NOT NULL
) WITHOUT ROWID;

INSERT INTO facts (name, value) VALUES ('folded', 0);

-- The journal: appended only, in this order. All else in this file can be derived from it.
-- The body comes last, so that reading the other columns never follows the pages of a long text.
CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    -- The entry before this one of the same message, 0 for its first: a message's entries are a chain that is
    -- followed backwards. It costs nothing when appending, where an index would dirty a random page each time.
    previous INTEGER NOT NULL CHECK (previous >= 0 AND previous < number),
    -- The first entry of the same message: its place in the order of admission.
    first INTEGER NOT NULL CHECK (first > 0 AND first <= number),
    -- Whether the message needs something after this entry (libintercom.session.entries, Standing.is_unfinished).
    unfinished INTEGER NOT NULL CHECK (unfinished IN (0, 1)),
    at_ms INTEGER NOT NULL,
    entry_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- JSON in ASCII: lone surrogates and every other code unit survive.
    body TEXT NOT NULL
);

-- Where each message stands: its newest entry up to facts.folded. Brought up to date for thousands of entries at once,
-- in the order of the key, since single insertions at random places would double the cost of a commit. Entries
-- beyond facts.folded are few; who opens the journal reads them.
CREATE TABLE messages (
    message_id TEXT PRIMARY KEY NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL REFERENCES entries (number),
    at_ms INTEGER NOT NULL,
    unfinished INTEGER NOT NULL CHECK (unfinished IN (0, 1))
) WITHOUT ROWID;

-- The order in which messages were last touched: what retention removes first. Also keeps the check of the foreign
-- key from reading the whole table.
CREATE UNIQUE INDEX messages_by_age ON messages (last);

-- What a new start takes up, in the order of admission.
CREATE INDEX messages_unfinished ON messages (first) WHERE unfinished = 1;
