-- A review study in PostgreSQL (15 or newer): the same events, masks by hash and claims as in a
-- study's folder, behind the same interface (`EventStore`). No server ships with this software.
--
-- A chain is one run of a program by one reader: (reader, host, session). Lines are kept as bytes,
-- so that hashes, signatures and `mamamia review verify` are those of the folder's files.

CREATE TABLE study (
    study_id text PRIMARY KEY,
    origin   char(64) NOT NULL CHECK (origin ~ '^[0-9a-f]{64}$'),  -- SHA-256 of content
    content  bytea NOT NULL                                        -- study.json, byte for byte
);

CREATE TABLE event (
    study_id text NOT NULL REFERENCES study,
    reader   text NOT NULL,
    host     text NOT NULL,
    session  text NOT NULL,
    seq      bigint NOT NULL CHECK (seq >= 0),
    hash     char(64) NOT NULL,
    prev     char(64) NOT NULL,      -- the study's origin where seq is 0
    line     bytea NOT NULL,         -- as in the folder, its end included
    received timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (study_id, reader, host, session, seq),
    UNIQUE (study_id, hash),
    -- one successor each: a chain cannot fork
    UNIQUE (study_id, reader, host, session, prev)
);

CREATE TABLE mask (
    study_id text NOT NULL REFERENCES study,
    sha256   char(64) NOT NULL,
    content  bytea NOT NULL,         -- or its address in an object store
    PRIMARY KEY (study_id, sha256)
);

CREATE TABLE claim (
    study_id text NOT NULL REFERENCES study,
    place    text NOT NULL,          -- CASE.ROUND.WHO
    number   integer NOT NULL CHECK (number > 0),
    reader   text NOT NULL,
    host     text NOT NULL,
    session  text NOT NULL,
    renewed  timestamptz NOT NULL DEFAULT now(),
    released boolean NOT NULL DEFAULT false,
    PRIMARY KEY (study_id, place, number)
);

-- Nothing is ever changed or removed but a claim's own signs of life.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a study only grows: % of % is refused', TG_OP, TG_TABLE_NAME;
END $$;
CREATE TRIGGER study_grows BEFORE UPDATE OR DELETE ON study
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER event_grows BEFORE UPDATE OR DELETE ON event
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER mask_grows BEFORE UPDATE OR DELETE ON mask
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- An event follows the one before it, of the same chain.
CREATE FUNCTION require_chain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before char(64);
BEGIN
    IF NEW.seq = 0 THEN
        SELECT origin INTO before FROM study WHERE study_id = NEW.study_id;
    ELSE
        SELECT hash INTO before FROM event
        WHERE (study_id, reader, host, session, seq)
            = (NEW.study_id, NEW.reader, NEW.host, NEW.session, NEW.seq - 1);
    END IF;
    IF before IS DISTINCT FROM NEW.prev THEN
        RAISE EXCEPTION 'event % of %/%-% does not follow the one before it',
            NEW.seq, NEW.reader, NEW.host, NEW.session;
    END IF;
    PERFORM pg_notify('mamamia_review', NEW.study_id || ' ' || NEW.hash);
    RETURN NEW;
END $$;
CREATE TRIGGER event_follows BEFORE INSERT ON event
    FOR EACH ROW EXECUTE FUNCTION require_chain();

-- A reader writes under the own name only: the data base's role is the reader's id.
ALTER TABLE event ENABLE ROW LEVEL SECURITY;
CREATE POLICY event_read ON event FOR SELECT USING (true);
CREATE POLICY event_own ON event FOR INSERT WITH CHECK (reader = current_user);
ALTER TABLE claim ENABLE ROW LEVEL SECURITY;
CREATE POLICY claim_read ON claim FOR SELECT USING (true);
CREATE POLICY claim_own ON claim FOR INSERT WITH CHECK (reader = current_user);
CREATE POLICY claim_renew ON claim FOR UPDATE USING (reader = current_user);
