/* A token against an issuer: each check as a line, and who its bearer would be. The token stays in memory. */
import { signal, useSignal } from "@preact/signals";
import { post, type ApiError } from "../api";
import type { Issuer, TokenTest } from "../identity-types";
import { Button, Field } from "../ui/controls";
import { Icon } from "../ui/icons";
import { FactList, Nothing, Section } from "../ui/page";
import { Note } from "../ui/states";
import { Lines } from "./issuer-parts";
import { fixOf } from "./reasons";
import { PERMISSION_WORDS, ROLES, roleTitle } from "./roles";
import { problemOf } from "./settings";

/* whose token passed, by issuer; gone with the page */
const passed = signal<Record<string, string>>({});

/** The user whose token passed all checks of this issuer in this browser, or null. */
export function testedOf(issuerId: string): string | null {
  return passed.value[issuerId] ?? null;
}

function Who({ test }: { test: TokenTest }) {
  const may = new Set(test.roles.flatMap((one) => ROLES.find((role) => role.name === one.role)?.permissions ?? []));
  const words = PERMISSION_WORDS;
  return (
    <>
      <Section title="Who this would be">
        <FactList
          facts={[
            ["User", test.username ? <span class="mono brk">{test.username}</span> : <Nothing>nobody</Nothing>],
            ["Known as", test.person ? test.person.name : <Nothing>not yet: made at the first sign-in</Nothing>],
            [
              "Groups",
              test.groups.length ? (
                <ul>
                  {test.groups.map((group) => (
                    <li class="mono brk" key={group}>
                      {group}
                    </li>
                  ))}
                </ul>
              ) : (
                <Nothing>none</Nothing>
              ),
            ],
            [
              "Roles",
              test.roles.length ? (
                <ul>
                  {test.roles.map((one, i) => (
                    <li key={i}>
                      {roleTitle(one.role)} <span class="t3">{one.scope === "org" ? "" : `in the ${one.scope} ${one.name ?? ""} `}by {one.group ?? one.via}</span>
                    </li>
                  ))}
                </ul>
              ) : (
                <Nothing>none</Nothing>
              ),
            ],
          ]}
        />
      </Section>
      <Section title="What this person may do">
        {test.roles.length === 0 && (
          <p class="t2">
            Nothing yet: <a href="/settings/members?do=group">give one of the groups a role</a>, or the person.
          </p>
        )}
        <ul class="mayList">
          {words.map(([permission, said]) => (
            <li key={permission} class={may.has(permission) ? undefined : "t3"}>
              <Icon name={may.has(permission) ? "tick" : "minus"} {...(may.has(permission) ? { tone: "good" as const } : {})} />
              <span>
                {may.has(permission) ? "" : "Not: "}
                {may.has(permission) ? said : said.charAt(0).toLowerCase() + said.slice(1)}
              </span>
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

export function TokenTester({ issuer }: { issuer: Issuer }) {
  const token = useSignal("");
  const test = useSignal<TokenTest | null>(null);
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const check = async () => {
    busy.value = true;
    error.value = null;
    try {
      const answer = await post<TokenTest>(`/issuers/${issuer.id}/test-token`, { token: token.value.trim() });
      test.value = answer;
      const { [issuer.id]: _, ...others } = passed.peek();
      passed.value = answer.valid ? { ...others, [issuer.id]: answer.username ?? "a person" } : others;
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  const found = test.value;
  return (
    <div class="stack">
      <Field label="ID token" name="token" multiline placeholder="eyJ…" value={token.value} onInput={(value) => (token.value = value)} error={error.value?.field("token")} />
      <p class="row8">
        <Button kind={found ? "default" : "primary"} busy={busy.value} disabled={token.value.trim() ? null : "Paste a token first."} onClick={() => void check()}>
          {found ? "Check again" : "Check the token"}
        </Button>
        {found?.valid && (
          <a class="btn primary" href={`/settings/identity/${issuer.id}?step=activate`}>
            Next: activate
          </a>
        )}
      </p>
      {error.value && !error.value.field("token") && (
        <Note tone="bad" alert title={`${error.value.title}.`}>
          <p class="t2">{error.value.detail}</p>
        </Note>
      )}
      {found && (
        <div class="cols half" aria-live="polite">
          <div>
            <p class={found.valid ? undefined : "c-unhealthy"}>
              <b>{found.valid ? "The token passes." : `The token is refused: ${(found.reason ?? "").replace(/_/g, " ")}.`}</b>
            </p>
            <Lines lines={found.checks} label="Checks of the token" fix={fixOf(found.reason)} />
          </div>
          <div>
            <Who test={found} />
          </div>
        </div>
      )}
    </div>
  );
}
