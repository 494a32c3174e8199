// Stream routes: ports whose TCP or UDP traffic the gateway proxies to a service; no HTTP words.
import { decode } from "../model/decode.ts";
import { type StreamRoute, streamRouteInput } from "../model/stream-route.ts";
import type { Changes } from "./change.ts";
import { resolveKey } from "./key.ts";
import { Resource, type ResourceKind } from "./resource.ts";

export function createStreamRoutes(changes: Changes): Resource<"stream_routes", StreamRoute> {
  return new Resource(changes, kind);
}

const kind: ResourceKind<"stream_routes", StreamRoute> = {
  collection: "stream_routes",
  word: "stream route",
  readOnly: [],
  parents: { service_id: { of: "services", ids: (route) => [route.service_id] } },
  decode: (document, { config }) => {
    const fields = decode(streamRouteInput, document);
    return {
      fields: {
        ...fields,
        sni: fields.sni.map((host) => host.toLowerCase()),
        service_id: resolveKey(config.services, fields.service_id, {
          path: "service_id",
          word: "service",
        }),
        certificate_id:
          fields.certificate_id === null
            ? null
            : resolveKey(config.certificates, fields.certificate_id, {
                path: "certificate_id",
                word: "certificate",
              }),
      },
    };
  },
  viewer: () => (route) => route,
  content: () => (route) => route,
};
