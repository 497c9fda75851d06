/* Why a token or a sign-in was refused: what it means to who signs in, and what whoever set the issuer up can do. */

interface Reason {
  /** to the person, who can do little more than try again or tell somebody */
  told: string;
  /** to the administrator */
  fix: string;
}

const REASONS: Record<string, Reason> = {
  bad_format: { told: "Your identity provider sent an answer that could not be read.", fix: "Paste the whole token: three parts joined by dots, without a line break or quotes." },
  too_large: { told: "Your identity provider's answer is too large.", fix: "A token has at most 16 KiB: send fewer groups, by a filter on the groups claim." },
  crit_unsupported: { told: "Your identity provider asks for something that Muster does not know.", fix: "Turn the header extension (crit) off at the provider." },
  alg_not_allowed: { told: "Your identity provider signs in a way that is not allowed here.", fix: "Let the provider sign with RS256 or ES256, or allow its algorithm for this issuer." },
  alg_key_mismatch: { told: "Your identity provider's signature does not fit its key.", fix: "The key set names another algorithm for this key: correct it at the provider." },
  key_not_found: { told: "Your identity provider's key is not known here yet.", fix: "Read the keys again, then check whether the token comes from this issuer and this realm or authorization server." },
  weak_key: { told: "Your identity provider's key is too weak.", fix: "Use RSA keys of 2,048 bits or more, or P-256." },
  bad_signature: { told: "Your identity provider's signature is wrong.", fix: "The token was changed on its way, or signed by somebody else. Fetch a new one." },
  iss_mismatch: { told: "The answer comes from another issuer than the one set up here.", fix: "Take over the issuer exactly as the token has it; a slash at the end counts." },
  aud_mismatch: { told: "The answer was meant for another application.", fix: "Use the ID token of this client, or add its audience in the step Claims." },
  azp_mismatch: { told: "The answer was issued to another application.", fix: "The token's azp is another client: use this client, or set its id." },
  typ_mismatch: { told: "Your identity provider sent another kind of token.", fix: "Use the ID token; an access token is for the API only." },
  exp_missing: { told: "Your identity provider's answer has no end.", fix: "Let the provider put exp into its tokens." },
  expired: { told: "The answer came too late. Sign in again.", fix: "Fetch a new token; if new ones are expired too, the clocks differ." },
  not_yet_valid: { told: "The answer is not valid yet: a clock is wrong.", fix: "Compare the provider's clock with this server's." },
  iat_future: { told: "The answer comes from the future: a clock is wrong.", fix: "Compare the provider's clock with this server's." },
  lifetime_too_long: { told: "Your identity provider's answer is valid for longer than allowed.", fix: "Shorten the tokens at the provider, or raise max_lifetime_s." },
  nonce_mismatch: { told: "The answer belongs to another sign-in. Start again.", fix: "The nonce is another one: the token is of another login." },
  state_mismatch: { told: "The answer belongs to no sign-in of this browser. Start again, in one tab, with cookies allowed.", fix: "The login was started in another browser, or more than 10 minutes ago." },
  replay: { told: "This answer was used before. Start again.", fix: "Each answer works once." },
  claim_missing: { told: "Your identity provider left out what Muster needs to know you.", fix: "Let the provider send the claim, or map another one in the step Claims." },
  claim_type: { told: "Your identity provider sent something in a form that Muster cannot read.", fix: "The claim has another type than text or a list of texts: map another one." },
  required_claim: { told: "You are not among those who may sign in here.", fix: "The token has not the value that the step Claims requires." },
  email_unverified: { told: "Your address is not verified with your identity provider.", fix: "Verify the address at the provider, or use another claim as the user name." },
  groups_overage: { told: "You are in more groups than your identity provider could send.", fix: "Assign groups to the application in Entra, or use app roles." },
  username_invalid: { told: "No user name comes out of your identity provider's answer.", fix: "Map another claim as the user name." },
  reserved_name: { told: "Your user name is reserved.", fix: "Give the issuer a prefix for user names and groups." },
  tenant_not_allowed: { told: "Your tenant may not sign in here.", fix: "Add the tenant's id in the step Claims." },
  idp_unavailable: { told: "Your identity provider cannot be reached from here. Try again in a minute.", fix: "The issuer's documents cannot be fetched: see the state of its keys." },
  idp_refused: { told: "Your identity provider did not accept the sign-in. Start again; if it stays, tell whoever runs Muster here.", fix: "The provider refused the code: check the client secret and the redirect URI." },
  not_configured: { told: "This way to sign in is not fully set up yet.", fix: "Fill in the step Client, with its secret." },
  unavailable: { told: "Muster could not finish the sign-in just now. Try again in a minute.", fix: "The server's database or its pool of outbound calls was busy." },
  person_disabled: { told: "You may not sign in here any more.", fix: "The person is disabled." },
  server_error: { told: "Your identity provider has a fault of its own. Try again in a minute.", fix: "Look into the provider's log." },
  temporarily_unavailable: { told: "Your identity provider is busy. Try again in a minute.", fix: "Look into the provider's log." },
  consent_required: { told: "Your identity provider wants your consent first. Start again.", fix: "Grant consent for the application at the provider." },
  login_required: { told: "Your identity provider asks you to sign in there first. Start again.", fix: "The provider had no session." },
  interaction_required: { told: "Your identity provider has a question for you. Start again.", fix: "The provider needs a page of its own." },
  bad_answer: { told: "The answer belongs to no sign-in of this browser, or was used before. Start again.", fix: "The answer was not one that was asked for." },
  no_role: { told: "You are known, but have no role here yet.", fix: "Give the person or one of the groups a role." },
  access_denied: { told: "Your identity provider did not let you in, or you cancelled.", fix: "The provider refused: look into its log." },
  issuer_disabled: { told: "This way to sign in has been turned off.", fix: "Activate the issuer." },
  login_expired: { told: "The sign-in took longer than 10 minutes. Start again.", fix: "The login was not finished in time." },
};

/** A sentence for any code, also for one that this console does not know. */
export function toldOf(code: string): string {
  return REASONS[code]?.told ?? `Your identity provider's answer was refused (${code.replace(/[^a-z0-9_]/gi, "").slice(0, 40)}).`;
}

export function fixOf(code: string | null): string | null {
  return code ? (REASONS[code]?.fix ?? null) : null;
}
