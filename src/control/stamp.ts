// Unique times of creation and change; knows nothing of objects.
import type { Clock } from "../clock.ts";
import type { Identity } from "../model/fields.ts";
import { collectionNames, type ConfigChange, type GatewayConfig } from "../model/gateway-config.ts";
import { LayeredMap } from "../model/layered-map.ts";

/** Returns the current time, RFC 3339 in UTC, at least one millisecond after every earlier, stored or observed time. */
export interface Stamp {
  (): string;
  /** The latest time, in milliseconds. */
  latest(): number;
  /** Notes the times of a change of another node, whose clock may be ahead; `at`: that of its revision. */
  observe(change: ConfigChange, at: string): void;
}

export function createStamp(clock: Clock, config: GatewayConfig): Stamp {
  let last = latest(config);
  const stamp = () => {
    last = Math.max(clock.now(), last + 1);
    return new Date(last).toISOString();
  };
  const observe = (change: ConfigChange, at: string) => {
    last = Math.max(last, Date.parse(at) || 0);
    for (const name of collectionNames)
      last = Math.max(last, latestOf(change[name].upserts as readonly Identity[]));
  };
  return Object.assign(stamp, { latest: () => last, observe });
}

/** The clock may have been set back since the last run. */
function latest(config: GatewayConfig): number {
  let last = 0;
  for (const name of collectionNames) {
    const objects: ReadonlyMap<string, Identity> = config[name];
    if (objects instanceof LayeredMap) last = Math.max(last, objects.latest);
    else last = Math.max(last, latestOf(objects.values()));
  }
  return last;
}

function latestOf(objects: Iterable<Identity>): number {
  let last = 0;
  for (const { created_at, updated_at } of objects)
    last = Math.max(last, Date.parse(created_at) || 0, Date.parse(updated_at) || 0);
  return last;
}
