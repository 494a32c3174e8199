// Everything that sends a secret somewhere: how it is written, all ways to lead it elsewhere, and what has it send the secret.
import type { Call } from "../api/people.ts";
import { selfSigned } from "../../support/certificate.ts";
import type { SecretCanary } from "./secret-canary.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What a sender is written with. */
export interface Parts {
  /** Where its secrets are sent. */
  readonly place: SecretCanary;
  /** A text, or `{"$secret": "name"}`. */
  readonly secret: unknown;
}

/** Has a stored object send its secret. */
export interface Trigger {
  readonly id: string;
  readonly editor: Call;
  /** Of the listener, with the route of the plugin. */
  readonly page: string;
}

export interface Sender {
  readonly name: string;
  readonly collection: "plugins" | "alerts" | "dns-providers" | "acme/accounts";
  /** As clients write it. */
  readonly secretField: string;
  readonly write: (parts: Parts) => Fields;
  /** Changes of a destination field each, as patches of the whole object, by the path of the field; the first leads to `evil`. */
  readonly moves: (evil: SecretCanary, place: SecretCanary) => Readonly<Record<string, Fields>>;
  /** A change that has nothing to do with it. */
  readonly harmless: Fields;
  /** Absent: it never sends the secret itself. */
  readonly send?: (trigger: Trigger) => Promise<unknown>;
  /** Whether a named secret may stand for it; default true. */
  readonly takesNames?: boolean;
}

const { cert: PEM } = await selfSigned();

const plugin = (name: string, config: Fields): Fields => ({ name, config });
const configOf = (config: Fields): Fields => ({ config });

const sink = (kind: "http" | "loki" | "otlp"): Sender => ({
  name: `access-log ${kind}`,
  collection: "plugins",
  secretField: `config.sinks[0].${kind}.headers.X-Token`,
  write: ({ place, secret }) =>
    plugin("access-log", {
      sinks: [{ [kind]: { url: place.url, headers: { "X-Token": secret } } }],
      queue: { max_coalescing_delay: 0.01 },
    }),
  moves: (evil) => ({
    [`config.sinks[0].${kind}.url`]: configOf({ sinks: [{ [kind]: { url: evil.url } }] }),
  }),
  harmless: configOf({ filters: { min_duration: 0, sample: 1 } }),
  send: ({ page }) => fetch(page),
});

const plugins: readonly Sender[] = [
  ...(["http", "loki", "otlp"] as const).map(sink),
  {
    name: "otel-tracing",
    collection: "plugins",
    secretField: "config.headers.X-Token",
    write: ({ place, secret }) =>
      plugin("otel-tracing", {
        endpoint: place.url,
        headers: { "X-Token": secret },
        sample_rate: 1,
        batch: { max_delay: 10 },
      }),
    moves: (evil) => ({ "config.endpoint": configOf({ endpoint: evil.url }) }),
    harmless: configOf({ resource_attributes: { "service.name": "x" } }),
    send: ({ page }) => fetch(page),
  },
  {
    name: "ldap-auth",
    collection: "plugins",
    secretField: "config.bind_password",
    write: ({ place, secret }) =>
      plugin("ldap-auth", {
        url: `ldap://127.0.0.1:${place.port}`,
        bind_dn: "cn=a,dc=x",
        bind_password: secret,
        base_dn: "dc=x",
        timeout: 300,
        cache_ttl: 0,
      }),
    moves: (evil) => ({
      "config.url": configOf({ url: `ldap://127.0.0.1:${evil.port}` }),
      "config.start_tls": configOf({ start_tls: true }),
      "config.ca": configOf({ ca: PEM }),
      "config.verify_certificate": configOf({ verify_certificate: false }),
    }),
    harmless: configOf({ filter: "(mail=${username})" }),
    send: ({ page }) =>
      fetch(page, { headers: { authorization: `Basic ${Buffer.from("u:p").toString("base64")}` } }),
  },
  {
    name: "oidc",
    collection: "plugins",
    secretField: "config.client_secret",
    write: ({ place, secret }) =>
      plugin("oidc", { issuer: place.url, client_id: "sluice", client_secret: secret }),
    moves: (evil) => ({ "config.issuer": configOf({ issuer: evil.url }) }),
    harmless: configOf({ allowed_groups: [] as string[], timeout: 4000 }),
    send: signInAt,
  },
  {
    name: "crowdsec",
    collection: "plugins",
    secretField: "config.api_key",
    write: ({ place, secret }) =>
      plugin("crowdsec", { url: place.url, api_key: secret, poll_interval: 0.1, fail_open: true }),
    moves: (evil) => ({ "config.url": configOf({ url: evil.url }) }),
    harmless: configOf({ max_decisions: 1000 }),
    send: asksByItself,
  },
  {
    name: "blocklist",
    collection: "plugins",
    secretField: "config.lists[0].headers.X-Token",
    write: ({ place, secret }) =>
      plugin("blocklist", {
        lists: [{ name: "one", url: place.url, headers: { "X-Token": secret } }],
        refresh_interval: 0.1,
        fail_open: true,
      }),
    moves: (evil) => ({
      "config.lists[0].url": configOf({ lists: [{ name: "one", url: evil.url }] }),
    }),
    harmless: configOf({ max_entries: 1000 }),
    send: asksByItself,
  },
];

/** The main thread sends it without a request of a client. */
async function asksByItself(): Promise<void> {}

/** As a browser that comes back from the identity provider with a code. */
async function signInAt({ page }: Trigger): Promise<void> {
  const first = await fetch(page, { redirect: "manual", headers: { accept: "text/html" } });
  const state = new URL(first.headers.get("location") ?? page).searchParams.get("state") ?? "";
  const cookie = first.headers
    .getSetCookie()
    .map((line) => line.split(";")[0])
    .join("; ");
  const back = new URL(`/_sluice/oidc/callback?code=c&state=${encodeURIComponent(state)}`, page);
  await fetch(back, { redirect: "manual", headers: { cookie } });
}

const EVENTS = ["worker_died"];
const testIt =
  (path: string, body?: Fields) =>
  ({ id, editor }: Trigger) =>
    editor(`POST /${path}/${id}/test`, body);

const webhookAlert = (config: (parts: Parts) => Fields) => (parts: Parts) => ({
  type: "webhook",
  events: EVENTS,
  config: { ...config(parts) },
});

const alerts: readonly Sender[] = [
  {
    name: "webhook alert, the value of a header",
    collection: "alerts",
    secretField: "config.headers[0].value",
    write: webhookAlert(({ place, secret }) => ({
      url: place.url,
      headers: [{ name: "X-Token", value: secret }],
    })),
    // The address is a secret itself, and sent along here. The response does not reveal that it is the stored one: it counts as another.
    moves: (evil, place) => ({
      "config.url": configOf({ url: evil.url }),
      "config.ca_certificates": configOf({ url: place.url, ca_certificates: PEM }),
    }),
    harmless: configOf({ template: '{"text": "${title}"}' }),
    send: testIt("alerts"),
  },
  {
    name: "webhook alert, the key that signs",
    collection: "alerts",
    secretField: "config.secret",
    write: webhookAlert(({ place, secret }) => ({ url: place.url, secret })),
    moves: (evil) => ({ "config.url": configOf({ url: evil.url }) }),
    harmless: { quiet_seconds: 60 },
  },
  {
    name: "webhook alert, the address",
    collection: "alerts",
    secretField: "config.url",
    write: ({ place, secret }) => ({
      type: "webhook",
      events: EVENTS,
      config: { url: typeof secret === "string" ? `${place.url}/${secret}` : secret },
    }),
    moves: () => ({ "config.ca_certificates": configOf({ ca_certificates: PEM }) }),
    harmless: { resolved: false },
  },
  {
    name: "mail alert",
    collection: "alerts",
    secretField: "config.password",
    write: ({ place, secret }) => ({
      type: "smtp",
      events: EVENTS,
      config: {
        host: "127.0.0.1",
        port: place.mailPort,
        tls: "none",
        username: "u",
        password: secret,
        from: "a@a.example",
        to: ["b@b.example"],
      },
    }),
    moves: (evil) => ({
      "config.port": configOf({ port: evil.mailPort }),
      "config.host": configOf({ host: "127.0.0.2" }),
      "config.tls": configOf({ tls: "implicit" }),
      "config.ca_certificates": configOf({ ca_certificates: PEM }),
    }),
    harmless: configOf({ to: ["c@c.example"] }),
    send: testIt("alerts"),
  },
];

const dns = (type: string, config: (parts: Parts) => Fields) => (parts: Parts) => ({
  type,
  propagation_timeout: 0,
  config: config(parts),
});
const elsewhere =
  (field: string) =>
  (evil: SecretCanary): Readonly<Record<string, Fields>> => ({
    [`config.${field}`]: configOf({ [field]: evil.url }),
  });
const local = ({ port }: SecretCanary) => `127.0.0.1:${port}`;

const dnsProviders: readonly Sender[] = [
  {
    name: "DNS webhook, token",
    collection: "dns-providers",
    secretField: "config.token",
    write: dns("webhook", ({ place, secret }) => ({ url: place.url, token: secret })),
    moves: elsewhere("url"),
    harmless: { propagation_timeout: 1 },
    send: testIt("dns-providers", { zone: "a.example" }),
  },
  {
    name: "DNS webhook, password",
    collection: "dns-providers",
    secretField: "config.password",
    write: dns("webhook", ({ place, secret }) => ({
      url: place.url,
      username: "u",
      password: secret,
    })),
    moves: elsewhere("url"),
    harmless: configOf({ username: "v" }),
    send: testIt("dns-providers", { zone: "a.example" }),
  },
  {
    name: "acme-dns",
    collection: "dns-providers",
    secretField: "config.password",
    write: dns("acme-dns", ({ place, secret }) => ({
      url: place.url,
      username: "u",
      password: secret,
      fulldomain: "x.a.example",
    })),
    moves: elsewhere("url"),
    harmless: { tags: ["x"] },
    send: testIt("dns-providers", { zone: "x.a.example" }),
  },
  {
    name: "rfc2136",
    collection: "dns-providers",
    secretField: "config.tsig_secret",
    write: dns("rfc2136", ({ place, secret }) => ({
      server: local(place),
      tsig_key_name: "k.",
      zone: "a.example",
      tsig_secret: typeof secret === "string" ? Buffer.from(secret).toString("base64") : secret,
    })),
    moves: (evil) => ({
      "config.server": configOf({ server: local(evil) }),
      "config.protocol": configOf({ protocol: "udp" }),
    }),
    harmless: configOf({ ttl: 30 }),
  },
  {
    name: "hetzner",
    collection: "dns-providers",
    secretField: "config.api_token",
    write: dns("hetzner", ({ secret }) => ({ api_token: secret })),
    moves: () => ({ "config.api": configOf({ api: "dns-console" }) }),
    harmless: configOf({ ttl: 90 }),
  },
  ...["application_secret", "consumer_key"].map((field): Sender => ({
    name: `ovh, ${field}`,
    collection: "dns-providers",
    secretField: `config.${field}`,
    write: dns("ovh", ({ secret }) => ({
      application_key: "k",
      application_secret: "s",
      consumer_key: "c",
      [field]: secret,
    })),
    // The other one, which is sent along, is not what this is about.
    moves: () => ({
      "config.endpoint": configOf({
        endpoint: "ovh-us",
        application_secret: "s",
        consumer_key: "c",
        [field]: undefined,
      }),
    }),
    harmless: configOf({ ttl: 90 }),
  })),
];

const DIRECTORY = "https://ca.example/directory";

const accounts: readonly Sender[] = [
  {
    name: "ACME account",
    collection: "acme/accounts",
    secretField: "eab_hmac_key",
    takesNames: false,
    write: ({ secret }) => ({
      directory_url: DIRECTORY,
      staging_directory_url: DIRECTORY,
      eab_key_id: "k",
      eab_hmac_key: Buffer.from(String(secret)).toString("base64url"),
      terms_agreed: true,
    }),
    moves: (evil) => ({
      directory_url: { directory_url: `https://127.0.0.1:${evil.port}/directory` },
      staging_directory_url: { staging_directory_url: `https://127.0.0.1:${evil.port}/directory` },
      staging: { staging: true },
      ca_certificates: { ca_certificates: PEM },
    }),
    harmless: { email: "a@a.example" },
  },
];

export const senders: readonly Sender[] = [...plugins, ...alerts, ...dnsProviders, ...accounts];
