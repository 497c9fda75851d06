/*
 * Signing in: with an identity provider, or with a one-time link, whose token stands in the fragment and is sent only
 * when a person presses.
 */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, get, signedOut, withQuery } from "../api";
import type { SignInOption } from "../identity-types";
import { navigate, query } from "../router";
import { signIn, signOut, signOutError } from "../session";
import { Button, Command } from "../ui/controls";
import { Brand } from "../ui/icons";
import { Note, Skeleton } from "../ui/states";
import { toldOf } from "./reasons";

const BACK_KEY = "muster-back";
const LINK_COMMAND = "musterd sign-in-link --user NAME";

function tokenInAddress(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}

/** Where the person was when the session ended; only a path of our own. */
function wayBack(): string {
  try {
    const kept = sessionStorage.getItem(BACK_KEY);
    return kept?.startsWith("/") && !kept.startsWith("//") ? kept : "/clusters";
  } catch {
    return "/clusters";
  }
}

function rememberPlace(): void {
  if (location.pathname !== "/sign-in") {
    try {
      sessionStorage.setItem(BACK_KEY, location.pathname + location.search);
    } catch {
      /* the person lands on the list of clusters instead */
    }
  }
}

function forgetPlace(): void {
  try {
    sessionStorage.removeItem(BACK_KEY);
  } catch {
    /* nothing was kept */
  }
}

/** What this server offers; null while it is asked, and [] where it cannot say: the link always works. */
function useOptions(): SignInOption[] | null {
  const options = useSignal<SignInOption[] | null>(null);
  const org = query.value.get("org");
  useEffect(() => {
    get<{ items: SignInOption[] }>(withQuery("/sign-in-options", { org })).then(
      (answer) => (options.value = answer.items),
      () => (options.value = []),
    );
  }, [org]);
  return options.value;
}

function Providers({ options }: { options: SignInOption[] }) {
  return (
    <ul class="providers" aria-label="Identity providers">
      {options.map((option, i) => (
        <li key={option.issuer_id}>
          {/* a whole page load: the answer sends the browser to the provider */}
          <a class={i === 0 ? "btn primary" : "btn"} href={withQuery(option.url, { return_to: wayBack() })} target="_self">
            Sign in with {option.title}
          </a>
        </li>
      ))}
    </ul>
  );
}

export function SignInPage() {
  const token = useSignal(tokenInAddress());
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const options = useOptions();
  const refused = query.value.get("error");
  useEffect(() => {
    document.title = "Sign in · Muster";
    rememberPlace();
    const look = () => {
      token.value = tokenInAddress();
      error.value = null;
    };
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  const submit = async () => {
    busy.value = true;
    error.value = null;
    try {
      await signIn(token.value ?? "");
      signedOut.value = false;
      const back = wayBack();
      forgetPlace();
      navigate(back, { replace: true });
    } catch (cause) {
      error.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    } finally {
      busy.value = false;
    }
  };
  const used = error.value && (error.value.status === 401 || error.value.status === 404 || error.value.status === 409 || error.value.status === 422);
  const howTo = (
    <>
      <p class="t2 gap12">A new link comes from the machine that runs Muster, and works once, for 10 minutes:</p>
      <Command text={LINK_COMMAND} label="The command that makes a sign-in link" />
    </>
  );
  return (
    <main id="main" class="signin">
      <span class="brand">
        <Brand />
        <span>Muster</span>
      </span>
      {token.value && !used ? (
        <>
          <h1 tabIndex={-1}>Sign in</h1>
          <p class="t2">This link signs you in once, in this browser. Press the button only if you asked for the link yourself.</p>
          {error.value && (
            <div class="gap16">
              <Note tone="bad" alert title={`${error.value.title}.`}>
                <p class="t2">{error.value.detail} The link has not been used up.</p>
              </Note>
            </div>
          )}
          <p class="row8 gap16">
            <Button kind="primary" busy={busy.value} onClick={() => void submit()}>
              {busy.value ? "Signing in…" : "Sign in"}
            </Button>
          </p>
        </>
      ) : used ? (
        <>
          <h1 tabIndex={-1}>This link has expired</h1>
          <div role="alert">
            <p class="t2">It was used before, or it is older than 10 minutes. Nobody has been signed in.</p>
          </div>
          {howTo}
        </>
      ) : signOutError.value ? (
        <>
          <h1 tabIndex={-1}>You may still be signed in</h1>
          <div role="alert">
            <p class="t2">
              The server did not confirm the end of the session. {signOutError.value.title}. {signOutError.value.detail}
            </p>
          </div>
          <p class="row8 gap16">
            <Button kind="primary" onClick={() => void signOut()}>
              Sign out again
            </Button>
          </p>
        </>
      ) : options === null ? (
        <>
          <h1 tabIndex={-1}>{refused ? "You could not be signed in" : signedOut.value ? "You are signed out" : "Sign in"}</h1>
          <Skeleton rows={1} label="the ways to sign in" />
        </>
      ) : options.length > 0 ? (
        <>
          <h1 tabIndex={-1}>{refused ? "You could not be signed in" : signedOut.value ? "You are signed out" : "Sign in"}</h1>
          {refused && (
            <div role="alert">
              <p class="t2">{toldOf(refused)}</p>
              <p class="s12 t3 gap4">Whoever runs Muster here finds the reason in the log under {refused.replace(/[^a-z0-9_]/gi, "").slice(0, 40)}.</p>
            </div>
          )}
          <Providers options={options} />
          <details class="gap24">
            <summary>Sign in with a link</summary>
            {howTo}
          </details>
        </>
      ) : (
        <>
          <h1 tabIndex={-1}>{refused ? "You could not be signed in" : signedOut.value ? "You are signed out" : "Sign in with a link"}</h1>
          {refused && (
            <div role="alert">
              <p class="t2">{toldOf(refused)}</p>
            </div>
          )}
          <p class="t2">Open the sign-in link that Muster printed when it started.</p>
          {howTo}
        </>
      )}
    </main>
  );
}
