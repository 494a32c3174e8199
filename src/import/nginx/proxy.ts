// Converts proxy_pass to a service with its targets, and the settings of proxied requests; knows no path.
import type { Document } from "../../control/body.ts";
import type { Report } from "../report.ts";
import type { NginxContext } from "./nginx.ts";
import { addressOf, shownAddress, type TargetAddress } from "./upstreams.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";
import { hasVariables, millisecondsOf, withFixed, withWholeTarget } from "./variables.ts";

export interface Destination {
  readonly scheme: "http" | "https";
  /** Host and port, or the name of an upstream block. */
  readonly authority: string;
  /** Null: the path of the request. It may have groups of an expression. */
  readonly uri: string | null;
  /** Whether the URI is the whole path, because the directive has variables. */
  readonly isWhole: boolean;
}

/** Null: the target depends on the request. */
export function destinationOf(pass: Directive, level: Level): Destination | null {
  const source = withWholeTarget(pass.args[0] ?? "");
  const fixed = withFixed(source, level);
  const [, scheme, socket, host = "", uri = ""] =
    /^(https?):\/\/(?:(unix:[^:]+)(?::|$)|([^/$?]+)(?=[/$?]|$))(.*)$/s.exec(fixed) ?? [];
  const authority = socket ?? host;
  if (scheme === undefined || authority === "" || hasVariables(authority)) return null;
  const common = { scheme: scheme as Destination["scheme"], authority };
  const rest = uri.replace(/^\$\{?(?:request_uri|uri|document_uri)\}?$/, "");
  if (rest === "") return { ...common, uri: null, isWhole: false };
  return { ...common, uri: rest, isWhole: hasVariables(source) };
}

/** What the Host header of proxied requests is: that of the client, of the target, or a name. */
export type HostMode = "preserve" | "target" | { readonly name: string };

interface Proxied {
  readonly destination: Destination;
  readonly level: Level;
  readonly host: HostMode;
  readonly pass: Directive;
}

/** The service; routes with the same targets and settings share one. */
export function serviceOf(
  { destination, level, host, pass }: Proxied,
  context: NginxContext,
): string | null {
  const { scheme, authority } = destination;
  const { output, upstreams, services } = context;
  const upstream = upstreams.get(authority);
  const own = addressOf(authority, scheme === "https" ? 443 : 80);
  if (upstream === undefined && own === null) return null;
  const fields = {
    protocol: scheme,
    host_header: hostHeader(host, { isUpstream: upstream !== undefined, authority }),
    ...redirectsOf({ destination, level }, output.report),
    ...upstream?.fields,
    ...(scheme === "https" ? { tls: tlsOf(level, context) } : {}),
    // The defaults of nginx.
    connect_timeout: 60_000,
    response_timeout: 60_000,
    read_timeout: 60_000,
    write_timeout: 60_000,
  };
  const key = `${authority} ${JSON.stringify(fields)}`;
  const known = services.get(key);
  if (known !== undefined) return known;
  const wanted = upstream?.name ?? (own === null ? authority : shownAddress(own));
  const name = output.name("services", wanted.replace(/^unix:.*\//, ""));
  const label = `service ${name}`;
  const id = output.add("services", { key, label }, { name, ...fields });
  services.set(key, id);
  const where = upstream === undefined ? "" : " and its upstream block";
  output.report.imported(label, `made from proxy_pass at ${shownPlace(pass.place)}${where}`);
  const servers = upstream?.servers ?? [{ ...(own as TargetAddress), weight: 100 }];
  const seen = new Set<string>();
  for (const server of servers) {
    const shown = shownAddress(server);
    // nginx sends one share for each line.
    if (seen.has(shown)) {
      output.report.changed(
        `target ${shown} of ${label}`,
        "is listed several times: set its weight",
      );
      continue;
    }
    seen.add(shown);
    output.add(
      "targets",
      { key: `${key} ${shown}`, label: `target ${shown} of ${label}` },
      {
        service_id: id,
        host: server.host,
        port: server.port,
        weight: server.weight,
        ...("isBackup" in server && server.isBackup ? { priority: 1 } : {}),
        ...("isDown" in server && server.isDown ? { enabled: false } : {}),
      },
    );
  }
  return id;
}

/** The client's own scheme, host and port, and the path behind them. */
const TO_CLIENT =
  /^(?:(?:https?|\$\{?scheme\}?):\/\/\$\{?(?:http_)?host\}?(?::\$\{?server_port\}?)?)?(\/.*)$/;

/** proxy_redirect: the gateway has only `off` and `default`, and reports rules that do anything else. */
function redirectsOf(
  { destination, level }: Pick<Proxied, "destination" | "level">,
  report: Report,
): Document {
  const rules = level.nearest("proxy_redirect");
  if (rules.some(({ args }) => args[0] === "off")) return { rewrite_redirects: false };
  const { scheme, authority, uri } = destination;
  for (const { args, place } of rules) {
    const [from = "", to = ""] = args.map((arg) => withFixed(arg, level));
    const isOfTarget = from.replace(/\/$/, "") === `${scheme}://${authority}`;
    const isDefault = isOfTarget && uri === null && TO_CLIENT.exec(to)?.[1] === "/";
    if (from !== "default" && !isDefault)
      report.changed(
        `proxy_redirect at ${shownPlace(place)}`,
        "only redirects to the target's own address are changed, to the client's address and the path of the location; applications read X-Forwarded-Host and X-Forwarded-Proto",
      );
  }
  return {};
}

function hostHeader(
  host: HostMode,
  { isUpstream, authority }: { readonly isUpstream: boolean; readonly authority: string },
): string {
  if (typeof host === "object") return host.name;
  if (host === "preserve" || !isUpstream) return host;
  return /^[A-Za-z0-9.-]+$/.test(authority) ? authority : "target";
}

function tlsOf(level: Level, { files, output }: NginxContext): Document {
  const isVerified = level.value("proxy_ssl_verify") === "on";
  const name = level.value("proxy_ssl_name");
  const trusted = level.last("proxy_ssl_trusted_certificate");
  const pem = trusted === null || !isVerified ? null : files.read(trusted.args[0] ?? "");
  if (isVerified && trusted !== null && pem === null)
    output.report.changed(
      `proxy_ssl_trusted_certificate at ${shownPlace(trusted.place)}`,
      "the file is not available: set tls.ca_certificates of the service",
    );
  return {
    verify: isVerified,
    ...(pem === null ? {} : { ca_certificates: pem }),
    ...(name === null || hasVariables(name) ? {} : { server_name: name }),
  };
}

/** Timeouts of a route. */
export function timeoutsOf(level: Level): Document {
  const at = (directive: string) => {
    const time = millisecondsOf(level.value(directive));
    return time === null || time === 0 ? null : Math.min(time, 86_400_000);
  };
  const [connect, read, write] = ["connect", "read", "send"].map((each) =>
    at(`proxy_${each}_timeout`),
  );
  const timeouts = {
    ...(connect == null ? {} : { connect_timeout: connect }),
    ...(read == null ? {} : { response_timeout: read, read_timeout: read }),
    ...(write == null ? {} : { write_timeout: write }),
  };
  return Object.keys(timeouts).length === 0 ? {} : { timeouts };
}
