-- Orders to a node's controller (BMC) beside those to its agent.
SET LOCAL search_path = muster;

ALTER TABLE command
  ADD COLUMN executor text NOT NULL DEFAULT 'agent' CHECK (executor IN ('agent', 'machine')),   -- who takes it
  DROP CONSTRAINT command_action_check,
  ADD CONSTRAINT command_action_check CHECK (action IN ('reset_gpu', 'reboot') OR (executor = 'machine' AND action = 'power_cycle'));
