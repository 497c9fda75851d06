/* The roles and what each of them may do, as the server's table has it; a test compares the two. */

export interface Role {
  name: string;
  /** as a choice in a form */
  title: string;
  does: string;
  permissions: readonly string[];
}

const READS = ["session", "cluster.read"] as const;

export const ROLES: readonly Role[] = [
  { name: "viewer", title: "Viewer", does: "Sees clusters, nodes, incidents and repairs.", permissions: [...READS] },
  { name: "operator", title: "Operator", does: "Cordons nodes, reports and closes incidents, asks for repairs.", permissions: [...READS, "node.write", "incident.write", "repair.request"] },
  { name: "approver", title: "Approver", does: "Approves, rejects and cancels repairs.", permissions: [...READS, "repair.request", "repair.decide"] },
  { name: "script_author", title: "Script author", does: "Writes checks that run on nodes.", permissions: [...READS, "script.write"] },
  {
    name: "admin",
    title: "Admin",
    does: "All of that, and clusters, members, tokens, settings and the audit log.",
    permissions: [...READS, "cluster.write", "node.write", "incident.write", "repair.request", "repair.decide", "token.write", "org.write", "audit.read", "member.write", "issuer.read", "issuer.write", "webhook.write", "script.write"],
  },
  { name: "auditor", title: "Auditor", does: "Reads the audit log besides what a viewer sees.", permissions: [...READS, "audit.read", "issuer.read"] },
];

/** In the order of the table that compares roles. */
export const PERMISSION_WORDS: readonly [permission: string, words: string][] = [
  ["cluster.read", "See clusters, nodes and repairs"],
  ["node.write", "Cordon, pause and change nodes"],
  ["incident.write", "Report and close incidents"],
  ["repair.request", "Ask for repairs"],
  ["repair.decide", "Approve and reject repairs"],
  ["cluster.write", "Add and change clusters"],
  ["token.write", "Tokens and the keys of agents"],
  ["member.write", "Members and their roles"],
  ["issuer.read", "See identity providers and test tokens"],
  ["issuer.write", "Set up identity providers"],
  ["webhook.write", "Set up webhooks"],
  ["script.write", "Write checks that run on nodes"],
  ["org.write", "Settings of the organization"],
  ["audit.read", "Read the audit log"],
];

export function roleTitle(name: string): string {
  return ROLES.find((role) => role.name === name)?.title ?? name;
}

/** "admin and auditor": who has a permission. */
export function rolesWith(permission: string): string {
  const names = ROLES.filter((role) => role.permissions.includes(permission)).map((role) => role.name);
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}`;
}
