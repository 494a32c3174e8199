// Routes of Kong for TCP, TLS and UDP, one stream route for each port.
import type { Members } from "../members.ts";
import { commonOf, type KongContext } from "./context.ts";
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

/** Adds it; there is no HTTP route then. */
export function addStreamRoute(members: Members, source: StreamSource): null {
  const { context, service, key, wanted } = source;
  const { output } = context;
  const protocols = members.texts("protocols");
  const destinations = members.objects("destinations");
  const ports = destinations.flatMap((each) => {
    each.leaveOut("ip", "it listens on all addresses");
    return each.number("port") ?? [];
  });
  if (service === null || !["tcp", "tls", "udp"].includes(service.protocol) || ports.length === 0) {
    members.drop("a stream route needs a service for streams and the ports of its destinations");
    return null;
  }
  const sources = members.objects("sources");
  const allow = sources.flatMap((each) => {
    each.leaveOut("port", "ports of clients cannot be told apart");
    return each.text("ip") ?? [];
  });
  const isTls = protocols.some((protocol) => protocol.startsWith("tls"));
  const mode = protocols.includes("tls_passthrough") ? "passthrough" : "terminate";
  const fields = {
    service_id: service.id,
    protocol: protocols.includes("udp") ? "udp" : "tcp",
    tls_mode: isTls ? mode : "none",
    sni: members.texts("snis"),
    allow,
    // Kong may still hold the port.
    enabled: false,
    ...commonOf(members),
  };
  for (const name of ["strip_path", "preserve_host", "path_handling", "regex_priority"])
    members.raw(name);
  for (const name of ["https_redirect_status_code", "request_buffering", "response_buffering"])
    members.raw(name);
  for (const plugin of members.objects("plugins"))
    plugin.drop("plugins of stream routes are not carried over");
  for (const port of ports) {
    const label = `${members.label} on port ${port}`;
    const name = output.name("stream_routes", ports.length === 1 ? wanted : `${wanted}-${port}`);
    output.add(
      "stream_routes",
      { key: `${key} ${port}`, label },
      { ...fields, name, listen_port: port },
    );
    members.report.changed(
      label,
      `became the stream route ${name}, switched off: enable it when Kong no longer listens there`,
    );
  }
  return null;
}
