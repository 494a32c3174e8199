// Refreshes a stored response in the background while clients get the stale one; knows no client.
import type { Refetched, RequestContext } from "../../pdk/context.ts";
import type { Instance } from "./instance.ts";
import type { CacheKey } from "./key.ts";
import type { Stored } from "./store.ts";
import type { FillRequest } from "./storing.ts";
import { fillRequestOf, prepare } from "./upstream-request.ts";

/** Concurrent refreshes in one worker. */
const MAX_REFRESHES = 64;

/** Does nothing when a refresh is in progress, or the service has just failed. */
export function refresh(
  context: RequestContext,
  instance: Instance,
  { stored, cacheKey }: { readonly stored: Stored; readonly cacheKey: CacheKey },
): void {
  const { refreshing, failing, fills, own, kit } = instance;
  if (refreshing.has(stored) || refreshing.size >= MAX_REFRESHES) return;
  if (failing.get(stored.key) !== undefined) return;
  refreshing.add(stored);
  const fillRequest = fillRequestOf(context, cacheKey, null);
  const fill = fills.begin(cacheKey, false);
  context
    .refetch({
      method: "GET",
      maxBytes: own.max_body,
      prepare: (upstream) => void prepare(upstream, { stored, cacheKey, isUncacheable: false }),
    })
    .then((response) => {
      if (!fill.isInvalidated) storeRefreshed(response, instance, { stored, fillRequest });
    })
    .catch((error: unknown) => {
      failing.set(stored.key, true);
      kit.log("warn", "cannot refresh a stale response", { error: String(error) });
    })
    .finally(() => {
      refreshing.delete(stored);
      fills.stored(fill);
    });
}

function storeRefreshed(
  { source, status, headers, body }: Refetched,
  { failing, storing, store }: Instance,
  { stored, fillRequest }: { readonly stored: Stored; readonly fillRequest: FillRequest },
): void {
  if (source !== "upstream" || status >= 500) {
    failing.set(stored.key, true);
    return;
  }
  const now = performance.now();
  if (status === 304) {
    const next = storing.freshened(stored, headers, fillRequest);
    if (next === null) store.remove(stored);
    else store.replace(stored, next);
    return;
  }
  const storable = storing.judge({ status, headers }, fillRequest, now);
  store.remove(stored);
  if (storable === null || body === null) return;
  store.put(storing.complete(storable, fillRequest, { body: new Uint8Array(body), now }));
}
