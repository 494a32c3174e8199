// Converts upstream blocks and their servers to services with targets; knows no route.
import type { Document } from "../../control/body.ts";
import type { Report } from "../report.ts";
import { millisecondsOf } from "./variables.ts";
import { type Directive, shownPlace } from "./tree.ts";

export interface TargetAddress {
  readonly host: string;
  readonly port: number | null;
}

interface Server extends TargetAddress {
  readonly weight: number;
  readonly isBackup: boolean;
  readonly isDown: boolean;
}

export interface Upstream {
  readonly name: string;
  readonly servers: readonly Server[];
  /** Fields of the service. */
  readonly fields: Document;
  /** `app:8080`, for requests beside the balancing. */
  readonly firstAddress: string;
}

/** `app`, `app:8080`, `[::1]:80`, `unix:/run/app.sock`; null: none of them. */
export function addressOf(text: string, defaultPort: number | null): TargetAddress | null {
  if (text.startsWith("unix:")) return { host: text.replace(/:$/, ""), port: null };
  const [, bracketed, plain = "", port] =
    /^(?:\[([\da-fA-F:.]+)\]|([^:/[\]$\s]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === "" ? null : { host, port: port === undefined ? defaultPort : Number(port) };
}

/** By name. */
export function readUpstreams(
  blocks: readonly Directive[],
  report: Report,
): ReadonlyMap<string, Upstream> {
  const found = new Map<string, Upstream>();
  for (const directive of blocks) {
    if (directive.name !== "upstream" || directive.block === null) continue;
    const name = directive.args[0] ?? "";
    found.set(name, readUpstream(name, directive, report));
  }
  return found;
}

function readUpstream(name: string, directive: Directive, report: Report): Upstream {
  const servers: Server[] = [];
  const limits = new Set<number>();
  let hasNoFailures = true;
  let fields: Document = {};
  for (const { name: word, args, place } of directive.block ?? []) {
    const label = `${word} of upstream ${name} at ${shownPlace(place)}`;
    if (word !== "server") {
      const own = balancingOf(word, args);
      if (own === null) report.omitted(label, "the service has no equivalent");
      else {
        fields = { ...fields, ...own.fields };
        if (own.why !== null) report.changed(label, own.why);
      }
      continue;
    }
    const address = addressOf(args[0] ?? "", 80);
    if (address === null) {
      report.omitted(`${label}: ${args[0]}`, "it is not a host and port");
      continue;
    }
    const optionOf = (key: string) =>
      args.find((arg) => arg.startsWith(`${key}=`))?.slice(key.length + 1) ?? null;
    const failures = optionOf("max_fails");
    if (failures !== "0") hasNoFailures = false;
    if (/^[1-9]\d{0,2}$/.test(failures ?? ""))
      fields = { ...fields, health: passiveHealth(Number(failures), optionOf("fail_timeout")) };
    limits.add(Number(optionOf("max_conns") ?? 0));
    if (optionOf("slow_start") !== null)
      fields = { ...fields, slow_start: millisecondsOf(optionOf("slow_start")) ?? 0 };
    servers.push({
      ...address,
      weight: Math.min(65_535, Number(optionOf("weight") ?? 1)),
      isBackup: args.includes("backup"),
      isDown: args.includes("down"),
    });
  }
  const [limit = 0] = limits;
  const [first] = servers;
  return {
    name,
    servers,
    fields: {
      ...fields,
      ...(hasNoFailures && servers.length > 0 ? { health: { passive: { enabled: false } } } : {}),
      ...(limits.size === 1 && limit > 0 ? { max_connections_per_target: limit } : {}),
    },
    firstAddress: first === undefined ? name : shownAddress(first),
  };
}

const passiveHealth = (failures: number, timeout: string | null): Document => ({
  passive: {
    consecutive_failures: failures,
    statuses: [],
    ejection_seconds: Math.min(
      3600,
      Math.max(1, Math.round((millisecondsOf(timeout) ?? 10_000) / 1000)),
    ),
  },
});

export const shownAddress = ({ host, port }: TargetAddress): string =>
  port === null ? host : `${host.includes(":") ? `[${host}]` : host}:${port}`;

const OPERATION = /^(?:keepalive\w*|zone|state|resolver\w*|ntlm|queue)$/;

/** Null: unknown. */
function balancingOf(
  name: string,
  args: readonly string[],
): { readonly fields: Document; readonly why: string | null } | null {
  if (OPERATION.test(name)) return { fields: {}, why: null };
  switch (name) {
    case "least_conn":
    case "least_time":
      return { fields: { algorithm: "least_connections" }, why: null };
    case "ip_hash":
      return {
        fields: { algorithm: "consistent_hash", hash_on: { source: "ip" } },
        why: "clients may get other targets than before: the hash is another one",
      };
    case "random":
      return { fields: { algorithm: "random_two" }, why: null };
    case "hash": {
      const source = hashSource(args[0] ?? "");
      return {
        fields: { algorithm: "consistent_hash", hash_on: source ?? { source: "ip" } },
        why:
          source === null
            ? `the key ${args[0]} became the client address`
            : "clients may get other targets than before: the hash is another one",
      };
    }
    case "sticky":
      return { fields: { sticky: { enabled: true } }, why: "the cookie has the gateway's name" };
    default:
      return null;
  }
}

function hashSource(key: string): Document | null {
  if (/^\$(?:binary_)?remote_addr$/.test(key)) return { source: "ip" };
  if (/^\$(?:request_uri|uri)$/.test(key)) return { source: "path" };
  const [, kind, name = ""] = /^\$(http|cookie|arg)_(\w+)$/.exec(key) ?? [];
  if (kind === undefined) return null;
  const source = kind === "http" ? "header" : kind === "cookie" ? "cookie" : "query";
  return { source, name: kind === "http" ? name.replaceAll("_", "-") : name };
}
