/* The JSON of who may do what: members, tokens, sessions and the audit log, as far as it is read here. */

export interface Member {
  id: string;
  person_id: string;
  name: string;
  role: string;
  project_id: string | null;
  cluster_id: string | null;
  created_by: string;
  created_at: string;
}

export interface ServiceToken {
  id: string;
  name: string;
  role: string;
  cluster_id: string | null;
  platform_admin: boolean;
  created_by: string;
  created_at: string;
  expires_at: string | null;
  rotated_at: string | null;
  previous_until: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
}

/** token: the secret, once; null where the same request was sent twice */
export interface ServiceTokenCreated extends ServiceToken {
  token: string | null;
  secret_shown_once: boolean;
}

export interface JoinTokenRow {
  id: string;
  cluster_id: string;
  uses_left: number;
  host_name: string | null;
  /** addresses that may join with it */
  cidr: string | null;
  created_by: string;
  created_at: string;
  expires_at: string;
  revoked_at: string | null;
}

export interface NodeKeyRevoked {
  node_id: string;
  name: string;
  generation: number;
  revoked_at: string;
}

export interface AuditRow {
  seq: number;
  at: string;
  actor: string | null;
  kind: string | null;
  credential: string | null;
  address: string | null;
  request_id: string | null;
  action: string | null;
  target: string | null;
  target_name: string | null;
  outcome: string | null;
  reason: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** A line of the export: body is the text that was hashed */
export interface AuditLine {
  seq: number;
  at: string;
  body: string;
  prev_hash: string;
  hash: string;
}
