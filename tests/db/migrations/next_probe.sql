-- The migration that the tests apply after all real ones: it needs a lock that stops writers, and changes every org's rows.
SET LOCAL search_path = muster;
ALTER TABLE project ADD COLUMN probe_note text NOT NULL DEFAULT '';
UPDATE project SET probe_note = 'of ' || name;
