/* How claims are written in the form and sent to the server. */

/** "hd = example.com", a line each. Null where a line cannot be read. */
export function readClaims(text: string): Record<string, string> | null {
  const claims: Record<string, string> = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const cut = line.indexOf("=");
    const name = line.slice(0, cut).trim();
    if (cut < 1 || !name) {
      return null;
    }
    claims[name] = line.slice(cut + 1).trim();
  }
  return claims;
}

/** A path such as realm_access.roles is not a claim by its whole name, and a URL is. */
export function groupsFrom(text: string): { groups_claim: string | null; groups_path: string | null } {
  const given = text.trim();
  const path = /[.[]/.test(given) && !given.includes("://");
  return { groups_claim: given && !path ? given : null, groups_path: path ? given : null };
}
