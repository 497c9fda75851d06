-- Number kept for the tables of checks; nothing to do yet.
SELECT 1;
