// Refreshes a stored response in the background while clients get the stale one; knows no client.
import type { Refetched, RequestContext } from "../../pdk/context.ts";
import type { Instance } from "./instance.ts";
import type { CacheKey } from "./key.ts";
import { fileRecordOf, type Stored } from "./store.ts";
import type { FillRequest } from "./storing.ts";
import { fillRequestOf, prepare } from "./upstream-request.ts";

/** Concurrent refreshes in one worker. */
const MAX_REFRESHES = 64;

/** Does nothing when a refresh is in progress in any worker, or the service has just failed. */
export function refresh(
  context: RequestContext,
  instance: Instance,
  { stored, cacheKey }: { readonly stored: Stored; readonly cacheKey: CacheKey },
): void {
  const { refreshing, failing, fills, own, kit, store } = instance;
  if (refreshing.size >= MAX_REFRESHES || failing.get(stored.key) !== undefined) return;
  const { epoch } = store;
  const fill = fills.lead({ key: flightKeyOf(stored), resource: stored.resource, epoch });
  if (fill === null) return;
  const fillRequest = fillRequestOf(context, { cacheKey, said: null, epoch });
  const { fieldOf } = fillRequest;
  // The refresh of another worker may have ended since the lookup.
  if (!store.isUnchanged(stored, { key: stored.key, fieldOf })) return fills.abandoned(fill);
  refreshing.add(fill);
  context
    .refetch({
      method: "GET",
      maxBytes: own.max_body,
      prepare: (upstream) => void prepare(upstream, { stored, cacheKey, isUncacheable: false }),
    })
    .then((response) => storeRefreshed(response, instance, { stored, fillRequest }))
    .catch((error: unknown) => {
      failing.set(stored.key, true);
      kit.log("warn", "cannot refresh a stale response", { error: String(error) });
    })
    .finally(() => {
      refreshing.delete(fill);
      fills.stored(fill);
    });
}

/** Keys of other fetches begin with a resource. */
const flightKeyOf = ({ key, variesOn }: Stored) => `\nrefresh ${JSON.stringify(variesOn)}${key}`;

async function storeRefreshed(
  { source, status, headers, body }: Refetched,
  { failing, storing, store, disk, own }: Instance,
  { stored, fillRequest }: { readonly stored: Stored; readonly fillRequest: FillRequest },
): Promise<void> {
  if (source !== "upstream" || status >= 500) {
    failing.set(stored.key, true);
    return;
  }
  const now = performance.now();
  if (status === 304) {
    const next = storing.freshened(stored, headers, fillRequest);
    if (typeof next === "string") store.remove(stored);
    else store.update(stored, next, fillRequest.epoch);
    return;
  }
  const decision = storing.judge({ status, headers }, fillRequest, now);
  if ("reason" in decision || body === null) {
    store.remove(stored);
    return;
  }
  const next = storing.complete(decision.storable, fillRequest, {
    bodyLength: body.byteLength,
    now,
  });
  const content =
    disk === null || body.byteLength < own.disk_above
      ? new Uint8Array(body)
      : await disk.write(body, fileRecordOf(next), fillRequest.epoch);
  // Without a moment in which other requests find nothing.
  if (content !== null) store.put(next, content, { old: stored, epoch: fillRequest.epoch });
}
