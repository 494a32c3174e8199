// Converts the DNS challenge of Nginx Proxy Manager: plugins of certbot with their credentials, as an INI text.
import { isDocument } from "../../control/body.ts";
import { ApiError } from "../../model/error.ts";
import type { DnsProviderType } from "../../model/dns-provider.ts";
import { addDnsProvider } from "../acme.ts";
import type { Members } from "../members.ts";
import type { NpmContext } from "./npm.ts";

interface Converted {
  readonly type: DnsProviderType;
  readonly secrets: Readonly<Record<string, string | undefined>>;
  readonly config?: Readonly<Record<string, string>>;
}

type Ini = Readonly<Record<string, string>>;

/** By the name of the plugin; each credential that is undefined is missing. */
const providers: Readonly<Record<string, (ini: Ini) => Converted | null>> = {
  cloudflare: (ini) => ({
    type: "cloudflare",
    secrets: { api_token: ini["dns_cloudflare_api_token"] },
  }),
  desec: (ini) => ({ type: "desec", secrets: { token: ini["dns_desec_token"] } }),
  digitalocean: (ini) => ({
    type: "digitalocean",
    secrets: { api_token: ini["dns_digitalocean_token"] },
  }),
  duckdns: (ini) => ({ type: "duckdns", secrets: { token: ini["dns_duckdns_token"] } }),
  gandi: (ini) => ({ type: "gandi", secrets: { access_token: ini["dns_gandi_token"] } }),
  hetzner: (ini) => ({
    type: "hetzner",
    secrets: { api_token: ini["dns_hetzner_api_token"] },
    config: { api: "dns-console" },
  }),
  "hetzner-cloud": (ini) => ({
    type: "hetzner",
    secrets: { api_token: ini["dns_hetzner_cloud_api_token"] },
    config: { api: "cloud" },
  }),
  ovh: (ini) => ({
    type: "ovh",
    secrets: {
      application_secret: ini["dns_ovh_application_secret"],
      consumer_key: ini["dns_ovh_consumer_key"],
    },
    config: {
      endpoint: ini["dns_ovh_endpoint"] ?? "ovh-eu",
      application_key: ini["dns_ovh_application_key"] ?? "",
    },
  }),
  rfc2136: (ini) => {
    const { dns_rfc2136_server: server = "", dns_rfc2136_port: port = "53" } = ini;
    const host = server.includes(":") ? `[${server}]` : server;
    return {
      type: "rfc2136",
      secrets: { tsig_secret: ini["dns_rfc2136_secret"]?.replaceAll(/\s+/g, "") },
      config: {
        server: port === "53" ? host : `${host}:${port}`,
        tsig_key_name: ini["dns_rfc2136_name"] ?? "",
        tsig_algorithm: (ini["dns_rfc2136_algorithm"] ?? "HMAC-SHA256").toLowerCase(),
      },
    };
  },
  route53: (ini) => ({
    type: "route53",
    secrets: {
      secret_access_key: ini["aws_secret_access_key"],
      ...("aws_session_token" in ini ? { session_token: ini["aws_session_token"] } : {}),
    },
    config: { access_key_id: ini["aws_access_key_id"] ?? "" },
  }),
};

interface Challenge {
  readonly meta: Members;
  readonly domains: readonly string[];
}

/** The id of the DNS provider; null, with a report entry, without an equivalent. Certificates with the same one share it. */
export function addNpmDnsProvider(
  { meta, domains }: Challenge,
  context: NpmContext,
): string | null {
  const { output } = context;
  const name = meta.text("dns_provider") ?? "";
  const ini = iniOf(meta.text("dns_provider_credentials") ?? "");
  const make = Object.hasOwn(providers, name) ? providers[name] : undefined;
  const converted = name === "acmedns" ? acmeDns(ini, domains, context) : (make?.(ini) ?? null);
  const secrets = Object.entries(converted?.secrets ?? {});
  const known = secrets.filter((entry): entry is [string, string] => Boolean(entry[1]));
  if (converted === null || known.length < secrets.length) {
    const why =
      make === undefined && name !== "acmedns"
        ? "this gateway has no such provider: add one that can write to the zone"
        : "its credentials are incomplete or of another form: add it as a DNS provider";
    output.report.omitted(`DNS provider ${name} of ${meta.label}`, why);
    return null;
  }
  const { type, config = {} } = converted;
  const key = JSON.stringify([type, config, known]);
  const present = context.dnsProviders.get(key);
  if (present !== undefined) return present;
  const seconds = meta.number("propagation_seconds") ?? 0;
  const id = addDnsProvider(output, {
    key,
    type,
    secrets: Object.fromEntries(known),
    config,
    // certbot waits for so long; the gateway at most.
    ...(seconds > 120 ? { propagationTimeout: Math.min(seconds, 3600) } : {}),
  });
  context.dnsProviders.set(key, id);
  return id;
}

/** `name = value` in lines; comments begin with `#` or `;`, and values may be quoted. */
function iniOf(text: string): Ini {
  const pairs = [...text.matchAll(/^[ \t]*([\w-]+)[ \t]*=[ \t]*(.*?)[ \t\r]*$/gm)];
  return Object.fromEntries(
    pairs.map(([, name = "", value = ""]) => [name, value.replace(/^(["'])(.*)\1$/, "$2")]),
  );
}

/** The registration is in a file of its own, by domain. */
function acmeDns(
  { dns_acmedns_api_url: url = "", dns_acmedns_registration_file: path = "" }: Ini,
  domains: readonly string[],
  { findFile, parseJson }: NpmContext,
): Converted | null {
  const file = path === "" ? null : (findFile?.(path) ?? null);
  if (file === null || "problem" in file) return null;
  const registrations = textOf(file.text, parseJson);
  const found = new Set(domains.map((name) => registrations[name.replace(/^\*\./, "")]));
  const [registration] = found;
  if (found.size !== 1 || !isDocument(registration)) return null;
  const { username, password, fulldomain } = registration;
  return {
    type: "acme-dns",
    secrets: { password: String(password ?? "") },
    config: {
      url: url.replace(/\/+$/, ""),
      username: String(username ?? ""),
      fulldomain: String(fulldomain ?? ""),
    },
  };
}

function textOf(
  text: string,
  parseJson: NpmContext["parseJson"],
): Readonly<Record<string, unknown>> {
  try {
    const value = parseJson(text);
    return isDocument(value) ? value : {};
  } catch (error) {
    if (error instanceof ApiError) return {};
    throw error;
  }
}
