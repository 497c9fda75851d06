/* The JSON of who may do what: members, tokens, sessions and the audit log, as far as it is read here. */

export interface Member {
  id: string;
  kind: "person" | "group" | (string & {});
  person_id: string | null;
  /** of the person, or the group as it comes out of a token */
  name: string;
  issuer_id: string | null;
  group: string | null;
  role: string;
  project_id: string | null;
  cluster_id: string | null;
  created_by: string;
  created_at: string;
}

/** An organization as the platform's administrators see it. */
export interface PlatformOrg {
  id: string;
  name: string;
  title: string;
  demo: boolean;
  created_at: string;
  suspended_at: string | null;
  suspended_by: string | null;
  suspend_reason: string | null;
  members: number;
  clusters: number;
  nodes: number;
}

/** Somebody of the organization, with or without a role of their own. */
export interface Person {
  id: string;
  name: string;
  disabled: boolean;
  issuer_id: string | null;
  email: string | null;
  seen_at: string | null;
  roles: number;
}

/** A role as the server's table has it. */
export interface RoleData {
  name: string;
  summary: string;
  permissions: { name: string; summary: string }[];
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

/** Where messages about events of some kinds are sent. */
export interface Webhook {
  id: string;
  name: string;
  url: string;
  ca_certificate: string | null;
  kinds: string[];
  cluster_id: string | null;
  enabled: boolean;
  created_by: string;
  created_at: string;
  updated_at: string;
  /** the secret before the present one signs too until then */
  previous_until: string | null;
  delivered_at: string | null;
  /** tries in a row that were not taken */
  failures: number;
  rest_until: string | null;
  /** by Muster, with its reason */
  disabled_at: string | null;
  disabled_reason: string;
  version: number;
}

/** secret: once; null where the same request was sent twice */
export interface WebhookCreated extends Webhook {
  secret: string | null;
  secret_shown_once: boolean;
}

export interface WebhookDelivery {
  id: string;
  event_seq: number | null;
  kind: string;
  state: "waiting" | "delivered" | "failed";
  attempts: number;
  tries: { at: string; status: number | null; duration_ms: number; error: string }[];
  next_at: string | null;
  created_at: string;
  ended_at: string | null;
  body: { type: string; timestamp: string; data: { summary: string } };
}

export interface JoinTokenRow {
  id: string;
  cluster_id: string;
  uses_left: number;
  host_name: string | null;
  /** addresses that may join with it */
  cidr: string | null;
  /** lets known nodes come back with a fresh key: after a person's approval, or by their hardware */
  rejoin?: "ask" | "auto" | null;
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
  /** iss and sub of an issuer's token */
  issuer?: string | null;
  subject?: string | null;
  address: string | null;
  request_id: string | null;
  action: string | null;
  target: string | null;
  target_name: string | null;
  outcome: string | null;
  reason: string | null;
  /** what the person wrote about it */
  comment?: string | null;
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

export interface IssuerKeys {
  fetched_at: string | null;
  expires_at: string | null;
  stale: boolean;
  count: number;
  unusable: { kid: string | null; reason: string }[];
  error: string | null;
}

/** What can be set; the server names the same fields in docs/oidc.md. */
export interface IssuerFields {
  name: string;
  title: string;
  preset: string;
  issuer: string;
  audiences: string[] | null;
  client_id: string | null;
  algorithms: string[] | null;
  username_claim: string;
  username_prefix: string | null;
  groups_claim: string | null;
  groups_path: string | null;
  groups_prefix: string | null;
  required_claims: Record<string, string>;
  allowed_domains: string[];
  entra_tenants: string[];
  discovery_url: string | null;
  ca_certificate: string | null;
  scopes: string[];
  sign_in: boolean;
  bearer: boolean;
  enabled: boolean;
}

export interface Issuer extends IssuerFields {
  id: string;
  client_secret_set: boolean;
  redirect_uri: string;
  backchannel_logout_uri: string;
  keys: IssuerKeys;
  created_by: string;
  created_at: string;
  updated_at: string;
  version: number;
}

/** passed null: an earlier line failed, so this one was not reached */
export interface CheckedLine {
  check: string;
  passed: boolean | null;
  detail: string;
}

export interface Discovered {
  lines: CheckedLine[];
  found: Record<string, unknown> | null;
}

export interface TokenTest {
  valid: boolean;
  reason: string | null;
  checks: CheckedLine[];
  username: string | null;
  groups: string[];
  person: { id: string; name: string } | null;
  roles: { role: string; scope: string; id: string | null; name: string | null; via: string; group?: string | null }[];
}

export interface SignInOption {
  issuer_id: string;
  title: string;
  preset: string;
  url: string;
}

/** A program at a command line that waits to be let in. */
export interface DeviceRequest {
  user_code: string;
  client: string;
  address: string;
  state: "pending" | "approved" | "denied" | (string & {});
  created_at: string;
  expires_at: string;
}

/** One of one's own sessions. */
export interface SessionItem {
  id: string;
  org: { id: string; name: string };
  created_at: string;
  seen_at: string;
  expires_at: string;
  address: string;
  user_agent: string;
  issuer: { id: string; title: string } | null;
  current: boolean;
}

/** A machine that asks to come back with a fresh key. */
export interface Rejoin {
  id: string;
  cluster_id: string;
  node_id: string;
  node_name: string;
  state: "pending" | "approved" | "denied" | "replaced" | (string & {});
  serial: string;
  serial_same: boolean;
  gpus_same: number;
  gpus_known: number;
  alive: boolean;
  address: string;
  public_key: string;
  decided_by: string | null;
  decided_at: string | null;
  created_at: string;
}
