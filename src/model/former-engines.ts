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

/** The reverse, for nodes of such a version. */
export const formerParts = (change: Parts): Parts =>
  mapped(change, {
    listeners: (listener) => ({
      ...listener,
      ...(listener["engine"] === "bun" ? { engine: "standard" } : {}),
      shared_engines: false,
    }),
    routes: (route) => ({ ...route, exact_responses: "off" }),
    applications: (application) => application,
  });

type Collection = "listeners" | "routes" | "applications";

function mapped(
  change: Parts,
  by: Readonly<Record<Collection, (object: Members) => Members>>,
): Parts {
  const parts = (Object.keys(by) as Collection[]).flatMap((name) => {
    const part = change[name];
    if (part === undefined) return [];
    const upserts = part.upserts as readonly object[] as readonly Members[];
    return [[name, { ...part, upserts: upserts.map(by[name]) }]];
  });
  return { ...change, ...(Object.fromEntries(parts) as Parts) };
}
