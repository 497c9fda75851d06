/* A view that is fetched when it is first shown. */
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Note, Skeleton } from "./ui/states";
import { Button } from "./ui/controls";

export function lazy<P extends object>(what: string, load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const ready = useSignal(loaded !== null);
    const failed = useSignal(false);
    useEffect(() => {
      if (!loaded && !failed.value) {
        load().then(
          (view) => {
            loaded = view;
            ready.value = true;
          },
          () => (failed.value = true),
        );
      }
    }, [failed.value]);
    if (ready.value && loaded) {
      const View = loaded;
      return <View {...props} />;
    }
    return failed.value ? (
      <div class="sec">
        <Note tone="bad" alert title={`${what} could not be loaded.`}>
          <p class="t2">The server did not send a part of the console. It may have been updated: load the page again.</p>
          <p class="row8">
            <Button small onClick={() => location.reload()}>
              Load again
            </Button>
          </p>
        </Note>
      </div>
    ) : (
      <div class="sec">
        <Skeleton rows={6} label={what.toLowerCase()} />
      </div>
    );
  };
}
