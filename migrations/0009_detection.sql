-- Detection: what belongs together. Incidents of one cause name their root; many nodes of one rack, leaf, PDU or file server at
-- once become one incident of no node; a part's history follows its serial.
SET LOCAL search_path = muster;

ALTER TABLE node
  ADD COLUMN pdu         text NOT NULL DEFAULT '' CHECK (length(pdu) <= 63),
  ADD COLUMN file_server text NOT NULL DEFAULT '' CHECK (length(file_server) <= 127),
  ADD COLUMN driver_changed_at timestamptz;       -- the driver's version was last seen to change

ALTER TABLE incident
  ALTER COLUMN node_id DROP NOT NULL,             -- a common cause is of no single node
  ADD CONSTRAINT incident_of_a_node CHECK (node_id IS NOT NULL OR check_id = 'common_cause'),
  ADD COLUMN kernel_seq bigint,                   -- number of the kernel's record that opened it; NULL = another source
  ADD COLUMN root_id    uuid,                     -- the incident of the same node that this one follows from
  ADD COLUMN common_id  uuid,                     -- the common cause that holds automatic action
  ADD COLUMN serial     text NOT NULL DEFAULT '', -- of the part, as the inventory said while it was open
  ADD COLUMN repeats    integer NOT NULL DEFAULT 1, -- such incidents of this part in 30 days, this one included
  ADD COLUMN action_set text CHECK (action_set IN ('none', 'reset_gpu', 'reboot', 'power_cycle', 'reprovision', 'failover', 'remove')),
  ADD COLUMN action_reason text NOT NULL DEFAULT '', -- why action_set stands for action, one sentence
  ADD COLUMN mode       text NOT NULL DEFAULT 'live' CHECK (mode IN ('live', 'shadow')),
  ADD FOREIGN KEY (org_id, root_id) REFERENCES incident (org_id, id),
  ADD FOREIGN KEY (org_id, common_id) REFERENCES incident (org_id, id);
CREATE UNIQUE INDEX incident_open_common ON incident (org_id, cluster_id, code) WHERE closed_at IS NULL AND node_id IS NULL;
CREATE INDEX incident_root ON incident (org_id, root_id) WHERE root_id IS NOT NULL;
CREATE INDEX incident_common ON incident (org_id, common_id) WHERE common_id IS NOT NULL;
CREATE INDEX incident_serial ON incident (org_id, serial, no DESC) WHERE serial <> '';
CREATE INDEX node_serial ON node (org_id, host_serial) WHERE host_serial <> '';
