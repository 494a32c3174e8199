// Routes: resolves names of services and listeners to ids, expands paths; no HTTP words.
import { decode } from "../model/decode.ts";
import { pathMatchOf, type Route, routeInput } from "../model/route.ts";
import type { Changes } from "./change.ts";
import { resolveKey } from "./key.ts";
import { Resource, type ResourceKind } from "./resource.ts";

export function createRoutes(changes: Changes): Resource<"routes", Route> {
  return new Resource(changes, kind);
}

const kind: ResourceKind<"routes", Route> = {
  collection: "routes",
  word: "route",
  readOnly: [],
  parents: {
    service_id: { of: "services", ids: (route) => [route.service_id] },
    listener_id: { of: "listeners", ids: (route) => route.listener_ids },
  },
  decode: (document, draft) => {
    const input = decode(routeInput, document);
    const { services, listeners } = draft.config;
    const service = input.service_id;
    const fields = {
      ...input,
      service_id:
        service === null
          ? null
          : resolveKey(services, service, { path: "service_id", word: "service" }),
      listener_ids: [
        ...new Set(
          input.listener_ids.map((key, index) =>
            resolveKey(listeners, key, { path: `listener_ids[${index}]`, word: "listener" }),
          ),
        ),
      ],
      paths: input.paths.map(pathMatchOf),
    };
    return { fields };
  },
  viewer: () => (route) => route,
  content: () => (route) => route,
};
