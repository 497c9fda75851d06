-- Who carries out an order to a controller: when its lease ends, another server looks at what it left.
SET LOCAL search_path = muster;

ALTER TABLE command
  ADD COLUMN holder uuid,                         -- the server that took it, of this start
  ADD COLUMN lease_until timestamptz;             -- it is alive until then; renewed while it works
