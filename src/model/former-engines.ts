// The engines of listeners in versions that had `standard`, `full` and both at once, and what is said of them today; knows no schema.
import type { ConfigChange } from "./gateway-config.ts";
import { socketField } from "./listener-rules.ts";

type Members = Readonly<Record<string, unknown>>;

/** The listener as it is stored today: `full`, both engines, and what Bun.serve cannot do are `sluice`, everything else `bun`. */
export function withPresentEngine(listener: Members): Members {
  const { shared_engines: hadBoth, ...present } = listener;
  const { engine = "standard" } = present;
  if (engine !== "standard" && engine !== "full" && hadBoth === undefined) return listener;
  if (present["engine"] === undefined && hadBoth === undefined) return listener;
  const field = socketField({ ...NO_RESTRICTION, ...present } as Restrictions);
  const isOwn = engine !== "standard" || hadBoth === true || field !== null;
  return { ...present, engine: isOwn ? "sluice" : "bun" };
}

type Restrictions = Parameters<typeof socketField>[0];

const NO_RESTRICTION: Restrictions = {
  client_auth: "none",
  strict_sni: false,
  proxy_protocol: false,
  max_connections: 0,
  max_connections_per_address: 0,
};

/** The route without what chose an engine for its hosts. */
export function withoutExactResponses(route: Members): Members {
  const { exact_responses: _, ...present } = route;
  return "exact_responses" in route ? present : route;
}

type Parts = Partial<ConfigChange>;

/** A change that such a version has stored or sent. `engine`: what it has for listeners without one. */
export const presentParts = (change: Parts, engine?: "standard"): Parts =>
  mapped(change, {
    listeners: (listener) =>
      withPresentEngine(engine === undefined ? listener : { engine, ...listener }),
    routes: withoutExactResponses,
    // What an application has last written of its routes.
    applications: ({ parts, ...application }) => ({
      ...application,
      parts: (parts as readonly Members[]).map(({ fields, ...part }) => ({
        ...part,
        fields: withoutExactResponses(fields as Members),
      })),
    }),
  });

/**
 * The change as such a version could have made it: what became `sluice` for a restriction of connections alone is `bun` again, with
 * which it had the same.
 */
export const expressibleParts = (change: Parts): Parts =>
  mapped(change, {
    listeners: (listener) => (wasStandard(listener) ? { ...listener, engine: "bun" } : listener),
  });

function wasStandard(listener: Members): boolean {
  const field = socketField({ ...NO_RESTRICTION, ...listener } as Restrictions);
  const { engine, max_header_bytes: head, client_auth: clients, http2 } = listener;
  if (engine !== "sluice" || field === null || (head as number) > 16_384) return false;
  // It had no HTTP/2 with client certificates.
  return clients === "none" || http2 === false;
}

/** The reverse of `presentParts`, for nodes of such a version. */
export const formerParts = (change: Parts): Parts =>
  mapped(change, {
    listeners: (listener) => ({
      ...listener,
      ...(listener["engine"] === "bun" ? { engine: "standard" } : {}),
      shared_engines: false,
    }),
    routes: (route) => ({ ...route, exact_responses: "off" }),
  });

type Collection = "listeners" | "routes" | "applications";

function mapped(
  change: Parts,
  by: Readonly<Partial<Record<Collection, (object: Members) => Members>>>,
): Parts {
  const parts = Object.entries(by).flatMap(([name, convert]) => {
    const part = change[name as Collection];
    if (part === undefined) return [];
    const upserts = part.upserts as readonly object[] as readonly Members[];
    return [[name, { ...part, upserts: upserts.map(convert) }]];
  });
  return { ...change, ...(Object.fromEntries(parts) as Parts) };
}
