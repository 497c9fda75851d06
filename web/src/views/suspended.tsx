/* What stands in place of every page of a suspended organization: why, and what is still open. */
import { useSignal } from "@preact/signals";
import { loadMe, me, signOut, switchOrg } from "../session";
import { Button } from "../ui/controls";
import { Time } from "../ui/page";
import { Note } from "../ui/states";

export function SuspendedPage() {
  const failed = useSignal<string | null>(null);
  const who = me.value;
  if (!who?.suspended) {
    return null;
  }
  const others = who.orgs.filter((org) => org.id !== who.org.id);
  return (
    <main id="main" class="alone">
      <h1 tabIndex={-1}>{who.org.title || who.org.name} is suspended</h1>
      <Note tone="warn" title={who.suspended.reason}>
        <p class="t2">
          Since <Time iso={who.suspended.at} form="moment" />. Its nodes go on reporting and nothing is lost; no repair starts. An administrator of the platform can let it work
          again.
        </p>
      </Note>
      <p class="row8 gap16">
        {who.platform_admin && (
          <a class="btn" href="/settings/platform">
            All organizations
          </a>
        )}
        {others.map((org) => (
          <Button key={org.id} onClick={() => void switchOrg(org.id).catch((cause: Error) => (failed.value = cause.message))}>
            Go to {org.title || org.name}
          </Button>
        ))}
        <Button onClick={() => void loadMe()}>Look again</Button>
        <Button onClick={() => void signOut()}>Sign out</Button>
      </p>
      {failed.value && (
        <p class="c-unhealthy s12" role="alert">
          {failed.value}
        </p>
      )}
    </main>
  );
}
