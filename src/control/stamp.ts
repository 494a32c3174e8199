// Times of creation and change that never repeat; knows no object.
import type { Clock } from "../clock.ts";
import type { Identity } from "../model/fields.ts";
import { collectionNames, type GatewayConfig } from "../model/gateway-config.ts";
import { LayeredMap } from "../model/layered-map.ts";

/** Returns the current time, RFC 3339 in UTC, at least 1 ms after every time returned or stored before. */
export function createStamp(clock: Clock, config: GatewayConfig): () => string {
  let last = latest(config);
  return () => {
    last = Math.max(clock.now(), last + 1);
    return new Date(last).toISOString();
  };
}

/** The clock may have been set back since the last run. */
function latest(config: GatewayConfig): number {
  let last = 0;
  for (const name of collectionNames) {
    const objects: ReadonlyMap<string, Identity> = config[name];
    if (objects instanceof LayeredMap) last = Math.max(last, objects.latest);
    else
      for (const { created_at, updated_at } of objects.values())
        last = Math.max(last, Date.parse(created_at) || 0, Date.parse(updated_at) || 0);
  }
  return last;
}
