/* The stand-in's identity providers: a list, discovery with its lines, a token tester, sign-in options. */
import { idOf, iso } from "./mock-data.mjs";

const HOUR = 3_600_000;
const line = (check, passed, detail) => ({ check, passed, detail });

/** tools: need(permission), page(items, url), missing(), Refusal. */
export function issuers({ need, page, missing, Refusal }) {
  let all;
  const invalid = (pointer, detail) => new Refusal(422, "invalid_fields", "Some fields are not valid", "1 field was refused.", { errors: [{ pointer, code: "invalid", detail }] });

  function make(n, fields) {
    const now = Date.now();
    const id = idOf("issuer", n);
    return {
      id, name: "generic", title: "", preset: "generic", issuer: "", audiences: null, client_id: null, client_secret_set: false, algorithms: null, username_claim: "sub", username_prefix: null,
      groups_claim: "groups", groups_path: null, groups_prefix: null, required_claims: {}, allowed_domains: [], entra_tenants: [], leeway_s: 60, max_lifetime_s: 86400, quirks: [], discovery_url: null,
      ca_certificate: null, scopes: ["openid", "profile", "email"], sign_in: true, bearer: false, enabled: true, not_before: null, redirect_uri: "https://muster.example.com/auth/callback",
      backchannel_logout_uri: `https://muster.example.com/auth/backchannel-logout/${id}`, keys: { fetched_at: iso(now - 5 * 60_000), expires_at: iso(now + HOUR), stale: false, count: 2, unusable: [], error: null },
      created_by: "Maya Okafor", created_at: iso(now - 40 * 24 * HOUR), updated_at: iso(now - 24 * HOUR), version: 3, ...fields,
    };
  }

  function reset() {
    all = [
      make(1, { name: "okta", title: "Okta", preset: "okta", issuer: "https://halden.okta.com/oauth2/default", client_id: "0oa8x1c2", client_secret_set: true, username_claim: "preferred_username", groups_prefix: "okta:", bearer: true }),
      make(2, { name: "partner", title: "Partner", preset: "keycloak", issuer: "https://sso.partner.example/realms/staff", client_id: "muster", enabled: false, groups_claim: null, groups_path: "realm_access.roles", keys: { fetched_at: iso(Date.now() - 30 * HOUR), expires_at: iso(Date.now() - 29 * HOUR), stale: true, count: 1, unusable: [{ kid: "old", reason: "weak_key" }], error: "The provider did not answer within 5 s." } }),
    ];
  }
  reset();

  const find = (id) => all.find((one) => one.id === id) ?? (() => { throw missing(); })();
  const known = ["name", "title", "preset", "issuer", "audiences", "client_id", "algorithms", "username_claim", "username_prefix", "groups_claim", "groups_path", "groups_prefix", "required_claims", "allowed_domains", "entra_tenants", "discovery_url", "ca_certificate", "scopes", "sign_in", "bearer", "enabled"];

  function take(one, body) {
    for (const [key, value] of Object.entries(body)) {
      if (key === "client_secret") {
        one.client_secret_set = value !== null;
      } else if (!known.includes(key)) {
        throw invalid(`#/${key}`, "is not known");
      } else {
        one[key] = value ?? { required_claims: {}, allowed_domains: [], entra_tenants: [], scopes: ["openid"], title: "", username_claim: "sub" }[key] ?? null;
      }
    }
    if (!one.issuer.startsWith("https://")) {
      throw invalid("#/issuer", "It is an https URL.");
    }
    if (!one.client_id && !one.audiences) {
      throw invalid("#/audiences", "Name the audiences, or the client_id.");
    }
    Object.assign(one, { version: one.version + 1, updated_at: iso(Date.now()) });
    return one;
  }

  const routes = [
    ["GET", "/issuers", (_, url) => { need("issuer.read"); return page(all, url); }],
    ["POST", "/issuers", (_, __, body) => {
      need("issuer.write");
      if (all.some((one) => one.name === body.name)) {
        throw new Refusal(409, "conflict", "There is an issuer of this name", "Choose another short name.");
      }
      for (const [key, value] of Object.entries(body)) {
        if (value === null && key !== "groups_claim") {
          throw invalid(`#/${key}`, "is not text");
        }
      }
      if ("groups_claim" in body && "groups_path" in body) {
        throw invalid("#/groups_path", "Give groups_claim or groups_path, not both.");
      }
      const one = take(make(10 + all.length, { keys: { fetched_at: null, expires_at: null, stale: false, count: 0, unusable: [], error: null } }), "groups_path" in body ? { groups_claim: null, ...body } : body);
      all.push(one);
      return one;
    }, 201],
    ["POST", "/issuers/discover", (_, __, body) => {
      need("issuer.write");
      const slash = /auth0/.test(body.issuer) !== body.issuer.endsWith("/");
      const theirs = slash ? (body.issuer.endsWith("/") ? body.issuer.slice(0, -1) : `${body.issuer}/`) : body.issuer;
      return {
        lines: [
          line("https", true, "The address is https, and public."), line("reachable", true, "Answered in 84 ms."),
          line("issuer", !slash, slash ? `The document says ${theirs}, this is ${body.issuer}.` : `${theirs}, equal byte for byte.`),
          line("endpoints", slash ? null : true, slash ? "" : "Authorization, token and end of session."), line("keys", slash ? null : true, slash ? "" : "2 usable keys, 1 left out (kid old: weak key)."),
          line("algorithms", slash ? null : true, slash ? "" : "RS256, ES256."),
        ],
        found: slash ? null : { authorization_endpoint: `${body.issuer}/v1/authorize`, token_endpoint: `${body.issuer}/v1/token`, jwks_uri: `${body.issuer}/v1/keys`, end_session_endpoint: null, scopes_supported: ["openid"], algorithms: ["RS256"] },
      };
    }],
    ["GET", "/issuers/:i", ({ i }) => { need("issuer.read"); return find(i); }],
    ["PATCH", "/issuers/:i", ({ i }, _, body, headers) => {
      need("issuer.write");
      const one = find(i);
      if (headers["if-match"] !== `"${one.version}"`) {
        throw new Refusal(412, "version_changed", "Somebody changed it meanwhile", "Read it again, then decide.");
      }
      return take(one, body);
    }],
    ["DELETE", "/issuers/:i", ({ i }) => { need("issuer.write"); all.splice(all.indexOf(find(i)), 1); }, 204],
    ["POST", "/issuers/:i/refresh-keys", ({ i }) => { need("issuer.write"); const one = find(i); one.keys = { ...one.keys, fetched_at: iso(Date.now()), stale: false, error: null }; return one; }],
    ["POST", "/issuers/:i/test-token", ({ i }, _, body) => {
      need("issuer.read");
      find(i);
      const wrong = body.token.includes("wrong");
      const rest = (passed, detail) => (wrong ? [null, ""] : [passed, detail]);
      return {
        valid: !wrong, reason: wrong ? "aud_mismatch" : null,
        checks: [
          line("format", true, "3 parts, 812 bytes."), line("issuer", true, "https://halden.okta.com/oauth2/default, equal byte for byte."), line("signature", true, "RS256, key 8Qm found in the issuer's key set."),
          line("audience", !wrong, wrong ? "api://default, wanted 0oa8x1c2." : "0oa8x1c2."), line("type", ...rest(true, "JWT.")), line("time", ...rest(true, "Ends in 52 min.")), line("subject", ...rest(true, "00u1.")),
          line("username", ...rest(true, "okta:a.meyer@halden.example.")), line("groups", ...rest(true, "3 groups.")),
        ],
        username: wrong ? null : "okta:a.meyer@halden.example", groups: wrong ? [] : ["okta:ml-research", "okta:gpu-operators", "okta:everyone"], person: null,
        roles: wrong ? [] : [{ role: "operator", scope: "org", id: null, name: null, via: "group", group: "okta:gpu-operators" }],
      };
    }],
  ];

  return {
    routes,
    reset,
    list: () => all,
    /** public: what the sign-in page offers */
    options: () => ({ items: all.filter((one) => one.enabled && one.sign_in).map((one) => ({ issuer_id: one.id, title: one.title || one.name, preset: one.preset, url: `/auth/sign-in/${one.id}` })) }),
    steer(wish) {
      if (wish.noIssuers) {
        all.length = 0;
      }
    },
  };
}
