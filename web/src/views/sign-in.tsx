/* Signing in with a one-time link: its token stands in the fragment and is sent only when a person presses. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, signedOut } from "../api";
import { navigate } from "../router";
import { signIn, signOut, signOutError } from "../session";
import { Button, Command } from "../ui/controls";
import { Brand } from "../ui/icons";
import { Note } from "../ui/states";

const BACK_KEY = "muster-back";
const LINK_COMMAND = "musterd sign-in-link --user NAME";

function tokenInAddress(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}

/** Where the person was when the session ended; only a path of our own. */
function wayBack(): string {
  try {
    const kept = sessionStorage.getItem(BACK_KEY);
    sessionStorage.removeItem(BACK_KEY);
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

export function SignInPage() {
  const token = useSignal(tokenInAddress());
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
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
      navigate(wayBack(), { replace: true });
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
      ) : (
        <>
          <h1 tabIndex={-1}>{signedOut.value ? "You are signed out" : "Sign in with a link"}</h1>
          <p class="t2">Open the sign-in link that Muster printed when it started.</p>
          {howTo}
        </>
      )}
    </main>
  );
}
