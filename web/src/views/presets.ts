/* The providers that the wizard knows: what each needs to be asked, and what follows from the answers. */
import type { IssuerFields } from "../identity-types";

export interface Question {
  key: string;
  label: string;
  help: string;
  placeholder: string;
  optional?: boolean;
}

export interface Preset {
  name: string;
  title: string;
  hint: string;
  asks: Question[];
  /** the issuer byte for byte, or "" while an answer is missing */
  issuer: (answers: Record<string, string>) => string;
  /** fields besides name, title and issuer */
  fields: (answers: Record<string, string>) => Partial<IssuerFields>;
  /** where the redirect URI belongs */
  client: string;
  /** what to know about its groups */
  groups: string;
}

const bare = (text: string | undefined) => (text ?? "").trim().replace(/^https?:\/\//, "").replace(/\/+$/, "");

export const PRESETS: readonly Preset[] = [
  {
    name: "google",
    title: "Google",
    hint: "Accounts of a Google Workspace",
    asks: [{ key: "domain", label: "Workspace domain", help: "Only accounts of this domain may sign in.", placeholder: "example.com" }],
    issuer: () => "https://accounts.google.com",
    fields: ({ domain }) => ({ required_claims: { hd: bare(domain) }, allowed_domains: [bare(domain)], username_claim: "email", groups_claim: null }),
    client: "Google Cloud console, APIs and services, Credentials: an OAuth client of the type Web application.",
    groups: "Google sends no groups: give roles to people.",
  },
  {
    name: "okta",
    title: "Okta",
    hint: "An Okta org, with its authorization server",
    asks: [
      { key: "domain", label: "Okta domain", help: "As in the address of the admin console, without -admin.", placeholder: "example.okta.com" },
      { key: "server", label: "Authorization server", help: "Usually default. Leave it empty for the org's own server.", placeholder: "default", optional: true },
    ],
    issuer: ({ domain, server }) => (bare(domain) ? `https://${bare(domain)}${server?.trim() ? `/oauth2/${server.trim()}` : ""}` : ""),
    fields: () => ({ username_claim: "preferred_username", groups_claim: "groups", groups_prefix: "okta:", scopes: ["openid", "profile", "email", "groups", "offline_access"] }),
    client: "Okta admin console, Applications: an OIDC Web Application with the grant type Refresh Token.",
    groups: "Add a groups claim with a filter to the authorization server, else no group arrives.",
  },
  {
    name: "auth0",
    title: "Auth0",
    hint: "An Auth0 tenant",
    asks: [
      { key: "domain", label: "Tenant domain", help: "Its issuer ends with a slash; Muster keeps it.", placeholder: "example.eu.auth0.com" },
      { key: "claim", label: "Groups claim", help: "The whole name that your Action gives it, a URL.", placeholder: "https://example.com/groups", optional: true },
    ],
    issuer: ({ domain }) => (bare(domain) ? `https://${bare(domain)}/` : ""),
    fields: ({ claim }) => ({ username_claim: "email", groups_claim: claim?.trim() || null, ...(claim?.trim() ? { groups_prefix: "auth0:" } : {}), scopes: ["openid", "profile", "email", "offline_access"] }),
    client: "Auth0 dashboard, Applications: a Regular Web Application, with Refresh Token Rotation.",
    groups: "An Action must add the groups under a claim named by a URL.",
  },
  {
    name: "entra",
    title: "Microsoft Entra ID",
    hint: "One tenant of Entra ID (Azure AD)",
    asks: [{ key: "tenant", label: "Directory (tenant) id", help: "The GUID on the overview page of the directory.", placeholder: "8f5d4ed8-61c1-4bd0-9a1c-0c2a5e0e2c11" }],
    issuer: ({ tenant }) => (bare(tenant) ? `https://login.microsoftonline.com/${bare(tenant)}/v2.0` : ""),
    fields: () => ({ username_claim: "preferred_username", groups_claim: "groups", groups_prefix: "entra:", scopes: ["openid", "profile", "email", "offline_access"] }),
    client: "Entra admin centre, App registrations: platform Web; set accessTokenAcceptedVersion to 2 in the manifest.",
    groups: "Assign groups to the application, or use app roles (claim roles): a person in more than 200 groups is refused otherwise.",
  },
  {
    name: "keycloak",
    title: "Keycloak",
    hint: "A realm of a Keycloak server",
    asks: [
      { key: "server", label: "Server", help: "With /auth at the end for old versions.", placeholder: "sso.example.com" },
      { key: "realm", label: "Realm", help: "Its name in the address, letter for letter.", placeholder: "staff" },
    ],
    issuer: ({ server, realm }) => (bare(server) && realm?.trim() ? `https://${bare(server)}/realms/${realm.trim()}` : ""),
    fields: () => ({ username_claim: "preferred_username", groups_path: "realm_access.roles", groups_prefix: "keycloak:" }),
    client: "Keycloak admin console, Clients: OpenID Connect, client authentication on, standard flow on.",
    groups: "Realm roles are at realm_access.roles; for groups add the mapper Group Membership and map the claim groups.",
  },
  {
    name: "generic",
    title: "Other provider",
    hint: "Anything that speaks OpenID Connect",
    asks: [{ key: "issuer", label: "Issuer", help: "The value of iss in its tokens, byte for byte; a slash at the end counts.", placeholder: "https://login.example.com" }],
    issuer: ({ issuer }) => (issuer ?? "").trim(),
    fields: () => ({}),
    client: "The provider's list of clients: a confidential client with the authorization code flow.",
    groups: "Map the claim in which the provider puts groups.",
  },
];

export function presetOf(name: string): Preset {
  return PRESETS.find((one) => one.name === name) ?? (PRESETS[PRESETS.length - 1] as Preset);
}

/** Answers at the beginning: only what nearly everybody keeps. */
export function firstAnswers(preset: Preset): Record<string, string> {
  return preset.name === "okta" ? { server: "default" } : {};
}
