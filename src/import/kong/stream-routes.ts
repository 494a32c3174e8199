// Converts routes of Kong for TCP, TLS and UDP to one stream route per port.
import type { Members } from "../members.ts";
import { commonOf, type KongContext, remember } from "./context.ts";
import type { KongService } from "./services.ts";

const STREAMS = ["tcp", "tls", "tls_passthrough", "udp"];

export const isStreamRoute = (members: Members): boolean =>
  members.texts("protocols").some((protocol) => STREAMS.includes(protocol));

export interface StreamSource {
  readonly context: KongContext;
  readonly service: KongService | null;
  readonly key: string;
  readonly wanted: string;
}

/** Adds the stream routes; returns null, because there is no HTTP route. */
export function addStreamRoute(members: Members, source: StreamSource): null {
  const { context, service, key, wanted } = source;
  const { output } = context;
  const protocols = members.texts("protocols");
  const destinations = members.objects("destinations");
  const places = destinations.flatMap((each) => {
    const port = each.number("port");
    return port === null ? [] : [{ port, ip: each.text("ip") }];
  });
  if (
    service === null ||
    !["tcp", "tls", "udp"].includes(service.protocol) ||
    places.length === 0
  ) {
    members.drop("a stream route needs a stream service and the ports of its destinations");
    return null;
  }
  const sources = members.objects("sources");
  const allow = sources.flatMap((each) => each.text("ip") ?? []);
  const hasPorts = sources.some((each) => each.has("port") || !each.has("ip"));
  for (const each of sources) each.omit("port", "client ports cannot be matched");
  const isTls = protocols.some((protocol) => protocol.startsWith("tls"));
  const mode = protocols.includes("tls_passthrough") ? "passthrough" : "terminate";
  const fields = {
    service_id: service.id,
    protocol: protocols.includes("udp") ? "udp" : "tcp",
    tls_mode: isTls ? mode : "none",
    sni: members.texts("snis"),
    allow,
    // Kong may still listen on the port.
    enabled: false,
    ...commonOf(members),
  };
  for (const name of ["strip_path", "preserve_host", "path_handling", "regex_priority"])
    members.raw(name);
  for (const name of ["https_redirect_status_code", "request_buffering", "response_buffering"])
    members.raw(name);
  const made: string[] = [];
  for (const { port, ip } of places) {
    const label = `${members.label} on port ${port}`;
    const name = output.name("stream_routes", places.length === 1 ? wanted : `${wanted}-${port}`);
    const address = ip === null ? {} : { listen_address: ip };
    const id = output.add(
      "stream_routes",
      { key: `${key} ${port}`, label },
      { ...fields, ...address, name, listen_port: port },
    );
    made.push(id);
    if (hasPorts)
      output.loseProtection({ scope: { stream_route_id: id }, what: `sources of ${label}` });
    for (const plugin of members.objects("plugins"))
      context.plugins.push({ members: plugin, owner: label, scope: { stream_route_id: id } });
    members.report.changed(
      label,
      `became the stream route ${name}, disabled: enable it when Kong no longer listens there`,
    );
  }
  const words = [members.text("id"), members.text("name")];
  remember(context, { kind: "streams", words, id: made.join(" ") });
  return null;
}
