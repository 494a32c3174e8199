// The engines of listeners in versions that had `standard`, `full` and both at once, and what is said of them today; knows no schema.
import type { ConfigChange } from "./gateway-config.ts";

type Members = Readonly<Record<string, unknown>>;

/** The listener as it is stored today: `sluice` serves what all former engines did, and is the default. */
export function withPresentEngine(listener: Members): Members {
  const { shared_engines: hadBoth, ...present } = listener;
  const { engine } = present;
  if (engine !== "standard" && engine !== "full" && hadBoth === undefined) return listener;
  return { ...present, engine: "sluice" };
}

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
 * Whether a change has listeners that such a version cannot serve: of Bun.serve by choice, or with HTTP/2 beside client certificates.
 * All others are of its engine `standard`.
 */
export const needsPresentEngines = ({ listeners }: Parts): boolean =>
  (listeners?.upserts ?? []).some(
    ({ engine, client_auth: clients, http2 }) => engine === "bun" || (clients !== "none" && http2),
  );

/** The reverse of `presentParts`, for nodes of such a version. */
export const formerParts = (change: Parts): Parts =>
  mapped(change, {
    listeners: (listener) => ({ ...listener, engine: "standard", shared_engines: false }),
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
