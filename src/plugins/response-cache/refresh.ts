// Fetches an answer anew while clients still get the stale one; knows no client.
import type { Refetched, RequestContext } from "../../pdk/context.ts";
import type { Instance } from "./instance.ts";
import type { CacheKey } from "./key.ts";
import type { Stored } from "./store.ts";
import type { Occasion } from "./storing.ts";
import { occasionOf, prepare } from "./upstream-request.ts";

/** At once, in one worker. */
const MAX_REFRESHES = 64;

/** Does nothing when somebody does it already, or the service has just failed. */
export function refresh(
  context: RequestContext,
  instance: Instance,
  { stored, place }: { readonly stored: Stored; readonly place: CacheKey },
): void {
  const { refreshing, failing, fills, own, kit } = instance;
  if (refreshing.has(stored) || refreshing.size >= MAX_REFRESHES) return;
  if (failing.get(stored.key) !== undefined) return;
  refreshing.add(stored);
  const occasion = occasionOf(context, place, null);
  const fill = fills.begin(place, false);
  context
    .refetch({
      method: "GET",
      maxBytes: own.max_body,
      prepare: (upstream) => void prepare(upstream, { stored, place, isUseless: false }),
    })
    .then((answer) => {
      if (!fill.isOutdated) take(answer, instance, { stored, occasion });
    })
    .catch((error: unknown) => {
      failing.set(stored.key, true);
      kit.log("warn", "a stale answer could not be fetched anew", { error: String(error) });
    })
    .finally(() => {
      refreshing.delete(stored);
      fills.stored(fill);
    });
}

function take(
  { source, status, headers, body }: Refetched,
  { failing, storing, store }: Instance,
  { stored, occasion }: { readonly stored: Stored; readonly occasion: Occasion },
): void {
  if (source !== "upstream" || status >= 500) {
    failing.set(stored.key, true);
    return;
  }
  const now = performance.now();
  if (status === 304) {
    const next = storing.freshened(stored, headers, occasion);
    if (next === null) store.remove(stored);
    else store.replace(stored, next);
    return;
  }
  const storable = storing.judge({ status, headers }, occasion, now);
  store.remove(stored);
  if (storable === null || body === null) return;
  store.put(storing.complete(storable, occasion, { body: new Uint8Array(body), now }));
}
