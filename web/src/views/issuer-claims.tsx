/* How a token becomes a person: which claims give the user name and the groups, and what a token must have besides. */
import { useSignal } from "@preact/signals";
import { Field } from "../ui/controls";
import { Note } from "../ui/states";
import { groupsFrom, readClaims } from "./claims";
import { SaveError, StepFoot, type StepProps } from "./issuer";
import { presetOf } from "./presets";

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

export function IssuerClaims({ issuer, save }: StepProps) {
  const username = useSignal(issuer.username_claim);
  const prefix = useSignal(issuer.username_prefix ?? "");
  const groups = useSignal(issuer.groups_path ?? issuer.groups_claim ?? "");
  const groupPrefix = useSignal(issuer.groups_prefix ?? "");
  const required = useSignal(Object.entries(issuer.required_claims).map(([name, value]) => `${name} = ${value}`).join("\n"));
  const domains = useSignal(issuer.allowed_domains.join(", "));
  const tenants = useSignal(issuer.entra_tenants.join(", "));
  const audiences = useSignal((issuer.audiences ?? []).join(" "));
  const unread = useSignal(false);
  const field = (key: string) => save.error?.field(key);
  const send = async () => {
    const claims = readClaims(required.value);
    unread.value = claims === null;
    if (!claims) {
      return false;
    }
    const list = (text: string) => (words(text).length ? words(text) : null);
    return save.send({
      username_claim: username.value.trim() || null,
      username_prefix: prefix.value.trim() || null,
      ...groupsFrom(groups.value),
      groups_prefix: groupPrefix.value.trim() || null,
      required_claims: Object.keys(claims).length ? claims : null,
      allowed_domains: list(domains.value),
      audiences: list(audiences.value),
      ...(issuer.preset === "entra" ? { entra_tenants: list(tenants.value) } : {}),
    });
  };
  return (
    <div class="stack form1">
      <Field label="User name" name="username_claim" help="The claim that people see; who somebody is follows from sub alone." value={username.value} onInput={(value) => (username.value = value)} error={field("username_claim")} />
      <Field label="Prefix of user names" name="username_prefix" help="Like okta: so that names of two providers cannot be the same." value={prefix.value} onInput={(value) => (prefix.value = value)} error={field("username_prefix")} />
      <Field label="Groups" name="groups" help={`${presetOf(issuer.preset).groups} A claim, or a way to it such as realm_access.roles; empty: no groups.`} value={groups.value} onInput={(value) => (groups.value = value)} error={field("groups_claim") ?? field("groups_path")} />
      <Field label="Prefix of groups" name="groups_prefix" help="Roles are given to groups with their prefix." value={groupPrefix.value} onInput={(value) => (groupPrefix.value = value)} error={field("groups_prefix")} />
      <Field label="A token must have" name="required_claims" multiline help="One a line: hd = example.com" value={required.value} onInput={(value) => (required.value = value)} error={unread.value ? "Each line is name = value." : field("required_claims")} />
      <Field label="Domains of the address" name="allowed_domains" help="Empty: any. When there are some, the address must be verified." value={domains.value} onInput={(value) => (domains.value = value)} error={field("allowed_domains")} />
      {issuer.preset === "entra" && <Field label="Tenants" name="entra_tenants" help="For the issuer of several tenants only: the ids of those that may sign in." value={tenants.value} onInput={(value) => (tenants.value = value)} error={field("entra_tenants")} />}
      <Field label="Audiences" name="audiences" help="Empty: the client id. Others only for tokens that programs send to the API." value={audiences.value} onInput={(value) => (audiences.value = value)} error={field("audiences")} />
      {issuer.preset === "google" && groups.value && (
        <Note tone="warn" title="Google sends no groups.">
          <p class="t2">Leave the claim empty and give roles to people.</p>
        </Note>
      )}
      <SaveError save={save} fields={["username_claim", "username_prefix", "groups_claim", "groups_path", "groups_prefix", "required_claims", "allowed_domains", "entra_tenants", "audiences"]} />
      <StepFoot save={save} next="test" onSave={send} />
    </div>
  );
}
