-- Number kept for the tables of detection; nothing to do yet.
SELECT 1;
