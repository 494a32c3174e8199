// Reads a service of Docker Compose: labels, variables and ports; knows no proxy.
import { type Document, isDocument } from "../../control/body.ts";
import { substituted, type Variables } from "./variables.ts";

export interface ComposeService {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  /** Labels and variables whose value the file does not contain. */
  readonly missing: readonly { readonly key: string; readonly variable: string }[];
  /** Host of its targets where no port is published. */
  readonly address: string;
  readonly isPublished: boolean;
  /** The lowest port of the container; null: it names none. */
  targetPort(usual: number | null): number | null;
  /** Where this host publishes a port of the container; address null: nowhere. */
  published(port: number): { readonly address: string | null; readonly port: number };
}

export function readService(
  name: string,
  service: Document,
  variables: Variables = new Map(),
): ComposeService {
  const missing: { key: string; variable: string }[] = [];
  const values = (member: unknown): Record<string, string> => {
    const found: Record<string, string> = {};
    for (const [key, value] of pairsOf(member)) {
      const { text, missing: variable } = substituted(value, variables);
      const { text: own } = substituted(key, variables);
      if (text === null || own === null) missing.push({ key, variable: variable ?? key });
      else found[own] = text;
    }
    return found;
  };
  const deploy = service["deploy"];
  const labels = {
    ...values(service["labels"]),
    ...values(isDocument(deploy) ? deploy["labels"] : null),
  };
  // Any variable may be missing; only those of proxies matter.
  const environment = values(
    Object.fromEntries(pairsOf(service["environment"]).filter(([key]) => isOfProxy(key))),
  );
  const image = substituted(String(service["image"] ?? ""), variables).text ?? service["image"];
  const ports = listOf(service["ports"]).flatMap((port) => portOf(port, variables) ?? []);
  const exposed = listOf(service["expose"]).flatMap((port) => {
    const [, number] = /^(\d+)(?:-\d+)?(?:\/tcp)?$/.exec(String(port)) ?? [];
    return number === undefined ? [] : [Number(number)];
  });
  const all = [...ports.map(({ target }) => target), ...exposed];
  const isHost = service["network_mode"] === "host";
  return {
    name,
    image: typeof image === "string" ? image : "",
    command: commandOf(service["command"], variables),
    labels,
    environment,
    missing: missing.filter(
      ({ key }) => /^(?:traefik\.|sluice\.|caddy)/i.test(key) || isOfProxy(key),
    ),
    address: isHost ? "127.0.0.1" : name,
    isPublished: isHost || ports.length > 0,
    targetPort: (usual) => (all.length === 0 ? usual : Math.min(...all)),
    published: (port) => {
      const found = ports.find(({ target, published }) => target === port && published !== null);
      return found === undefined || found.published === null
        ? { address: null, port }
        : { address: found.address, port: found.published };
    },
  };
}

const isOfProxy = (key: string): boolean =>
  /^(?:VIRTUAL_|LETSENCRYPT_|ACME_|HTTPS_METHOD$|CERT_NAME$|NETWORK_ACCESS$|TRAEFIK_)/.test(key);

/** `{a: b}` or `["a=b"]`; a variable without a value is that of the shell. */
function pairsOf(member: unknown): readonly (readonly [string, string])[] {
  if (isDocument(member))
    return Object.entries(member).map(([key, value]) => [key, value === null ? "" : String(value)]);
  return listOf(member).flatMap((item) => {
    const text = String(item);
    const at = text.indexOf("=");
    return at === -1 ? [[text, ""] as const] : [[text.slice(0, at), text.slice(at + 1)] as const];
  });
}

const listOf = (member: unknown): readonly unknown[] => (Array.isArray(member) ? member : []);

interface PublishedPort {
  readonly target: number;
  readonly published: number | null;
  /** Address on this host. */
  readonly address: string;
}

/** `8080:80`, `127.0.0.1:8080:80/tcp`, `80`, or the long form; null: it is none of TCP. */
function portOf(member: unknown, variables: Variables): PublishedPort | null {
  if (isDocument(member)) {
    const target = Number(member["target"]);
    const published = Number(member["published"] ?? Number.NaN);
    const given = member["host_ip"];
    if (!Number.isInteger(target) || member["protocol"] === "udp") return null;
    return {
      target,
      published: Number.isInteger(published) ? published : null,
      address: addressOf(typeof given === "string" ? given : ""),
    };
  }
  const { text } = substituted(String(member), variables);
  const [, address = "", published, target] =
    /^(?:(?:(\[[^\]]+\]|[\d.]+):)?(\d+):)?(\d+)(?:\/tcp)?$/.exec(text ?? "") ?? [];
  if (target === undefined) return null;
  return {
    target: Number(target),
    published: published === undefined ? null : Number(published),
    address: addressOf(address),
  };
}

/** Every address of this host: its loopback address. */
const addressOf = (given: string): string =>
  ["", "0.0.0.0", "[::]", "::"].includes(given) ? "127.0.0.1" : given.replace(/^\[(.*)\]$/, "$1");

function commandOf(member: unknown, variables: Variables): readonly string[] {
  const words = typeof member === "string" ? member.split(/\s+/) : listOf(member).map(String);
  return words.flatMap((word) => substituted(word, variables).text ?? []);
}
