-- Orders to the operators' own automation beside those to agents and controllers.
SET LOCAL search_path = muster;

ALTER TABLE command
  DROP CONSTRAINT command_executor_check,
  ADD CONSTRAINT command_executor_check CHECK (executor IN ('agent', 'machine', 'webhook')),   -- who takes it
  DROP CONSTRAINT command_action_check,
  ADD CONSTRAINT command_action_check CHECK (action IN ('reset_gpu', 'reboot') OR (executor IN ('machine', 'webhook') AND action = 'power_cycle')
                                             OR (executor = 'webhook' AND action = 'reprovision'));
