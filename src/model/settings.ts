// Settings: what holds for the whole gateway; knows no other resource.
import { type Static, Type as t } from "@sinclair/typebox";
import { decode } from "./decode.ts";
import { discovery } from "./discovery.ts";
import { since } from "./resource.ts";
import {
  cidr,
  type FieldForm,
  flag,
  group,
  integer,
  listOf,
  milliseconds,
  nullable,
  oneOf,
  proxyNetwork,
} from "./fields.ts";
import { proxiesInWords, proxyListDates } from "./known-proxies.ts";
import { limits } from "./limits.ts";
import { localCaSettings } from "./local-ca.ts";
import { SECRET_NAMES } from "./secret-names.ts";
import { asHostName } from "./host-name.ts";

const form: FieldForm = {
  groups: [
    { id: "management", title: "Management", text: "This web UI and the API behind it." },
    {
      id: "proxies",
      title: "Proxies in front",
      text: "A load balancer or CDN in front of this gateway passes client addresses in X-Forwarded-For.",
    },
    { id: "site", title: "Default site", text: "The response when no route matches." },
    { id: "requests", title: "Requests", text: "Request ids, debug headers and masking." },
    {
      id: "retention",
      title: "Retention",
      text: "How much history is stored. The oldest entries are deleted first.",
    },
    {
      id: "geoip",
      title: "GeoIP",
      text: "Databases in MaxMind format for plugins that use country or network (ASN).",
      folded: true,
      summary: "No databases",
    },
    {
      id: "limits",
      title: "Limits",
      text: "Limits of the whole gateway. Plugins can limit by route and client.",
      folded: true,
      summary: "Defaults",
    },
    {
      id: "discovery",
      title: "Discovery",
      text: "Applications that follow containers and their labels.",
      folded: true,
      summary: "Off",
    },
    {
      id: "local_ca",
      title: "Local CA",
      text: "The gateway's own CA, which signs certificates for private names.",
      folded: true,
      summary: "Private names and networks",
    },
    {
      id: "plugins",
      title: "Plugins of your own",
      text: "TypeScript files that the gateway loads as plugins. They can do whatever the gateway can.",
      folded: true,
      summary: "None",
    },
    {
      id: "fleet",
      title: "Fleet",
      text: "Nodes that are away, or cut off from the database of their fleet. Without effect on a gateway without a fleet.",
      folded: true,
      summary: "Defaults",
    },
  ],
};

const cloudflare = group(
  {
    networks: listOf(
      cidr,
      `Networks that the name cloudflare in trusted_proxies stands for. Empty: those that come with the program (${proxyListDates.cloudflare})`,
      {
        form: {
          title: "Networks of Cloudflare",
          help: `What the name cloudflare stands for. Empty: the list of ${proxyListDates.cloudflare} that comes with the program. Newer ones are at https://www.cloudflare.com/ips-v4 and /ips-v6`,
          example: "173.245.48.0/20",
        },
      },
    ),
    published_on: nullable(
      t.String({
        pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$",
        errorMessage: "must be a day such as 2026-11-30",
      }),
      "Day of this list; for your own information",
      {
        title: "Day of the networks of Cloudflare",
        help: "For your own information",
        example: "2026-11-30",
      },
    ),
  },
  "A newer list of Cloudflare's networks than the one that comes with the program",
  { group: "proxies" },
);

export const settingsInput = t.Object(
  {
    public_url: nullable(
      asHostName(
        t.String({
          pattern: "^https?://[^/?#\\s]+/?$",
          errorMessage: "must be http:// or https:// and a host, without a path",
          maxLength: 255,
        }),
      ),
      "Public URL of the management API and UI",
      {
        title: "Public address",
        help: "URL of this UI. Single sign-on redirects to it, alerts link to it, and with https:// the session cookie is Secure. Empty: none",
        example: "https://gateway.example.com",
      },
    ),
    trusted_proxies: listOf(
      proxyNetwork,
      `Networks whose X-Forwarded-* headers are trusted on every listener; also names of proxies with their published networks of a day: ${proxiesInWords}`,
      {
        form: {
          help: `Addresses and networks whose X-Forwarded-* headers are trusted, on every listener, or a name: ${proxiesInWords}. Empty: none. Never trust a network that clients connect from`,
          example: "192.0.2.0/24",
          group: "proxies",
        },
      },
    ),
    cloudflare: since(9, { ...cloudflare, default: decode(cloudflare, {}) }),
    admin_allowed_cidrs: listOf(
      cidr,
      "Networks that may use the management API. Empty: those of --admin-allow; without either, only this machine. A change that locks out its own client needs ?force=1",
      {
        form: {
          title: "Allowed networks",
          help: "The gateway rejects clients from other networks. Empty: the networks of --admin-allow",
          example: "10.0.0.0/8",
        },
      },
    ),
    permitted_destinations: since(
      7,
      listOf(
        cidr,
        "Link-local and metadata addresses that the gateway may connect to: it refuses them for targets, plugins, alerts and all else, because clouds serve the machine's credentials there; only an admin may set it",
        {
          form: {
            title: "Permitted destinations",
            help: "Link-local addresses and metadata services that the gateway may connect to. Clouds serve the machine's credentials there. Empty: none",
            example: "169.254.10.0/24",
            group: "requests",
          },
        },
      ),
    ),
    default_site: group(
      {
        action: oneOf(["404", "redirect", "html", "close"], {
          default: "404",
          description: "Response when no route matches",
          form: {
            title: "Response",
            help: "",
            options: {
              "404": "Not found (404)",
              redirect: "Redirect",
              html: "Custom page",
              close: "Close the connection without a response",
            },
          },
        }),
        to: t.String({
          default: "",
          maxLength: 2048,
          // It becomes a header as it is.
          pattern: "^[\\x21-\\x7e]*$",
          errorMessage: "must hold neither spaces, nor control characters, nor any beyond ASCII",
          description: "URL of the redirect",
          form: {
            title: "Redirect to",
            help: "A URL, or a path on the same host",
            example: "https://www.example.com/",
            isNeeded: true,
            when: { action: ["redirect"] },
          },
        }),
        html: t.String({
          default: "",
          maxLength: 262_144,
          description: "HTML page",
          form: {
            title: "Page",
            help: "HTML, up to 256 KB; sent with status 200",
            example: "<!doctype html><title>Nothing here</title>",
            input: "code",
            when: { action: ["html"] },
          },
        }),
      },
      "Response when no route matches",
      { group: "site" },
    ),
    geoip: group(
      {
        country_db: nullable(t.String({ maxLength: 4096 }), "Path of a MaxMind country database", {
          title: "Country database",
          help: "File path on the gateway's machine; reloaded when the file changes",
          example: "/var/lib/geoip/GeoLite2-Country.mmdb",
        }),
        asn_db: nullable(t.String({ maxLength: 4096 }), "Path of a MaxMind ASN database", {
          title: "ASN database",
          help: "File path on the gateway's machine",
          example: "/var/lib/geoip/GeoLite2-ASN.mmdb",
        }),
      },
      "GeoIP databases",
      { group: "geoip" },
    ),
    debug_headers: flag(
      false,
      "Add X-Sluice-Worker, X-Sluice-Revision, X-Sluice-Route and X-Sluice-Target to every proxied response",
      {
        help: "Responses name worker, revision, route and target (X-Sluice-…). All clients see them: for debugging only",
        group: "requests",
      },
    ),
    retention: group(
      {
        revisions: integer(1000, {
          minimum: 1,
          maximum: 1_000_000,
          description: "Number of revisions",
          form: { help: "Versions of the configuration that can be restored" },
        }),
        audit_days: integer(90, {
          minimum: 1,
          maximum: 3650,
          description: "Days until audit entries are deleted",
          form: { title: "Audit log days", help: "Maximum age of audit log entries" },
        }),
        audit_entries: integer(10_000, {
          minimum: 100,
          maximum: 10_000_000,
          description: "Number of audit entries",
          form: { title: "Audit log entries", help: "Maximum number of audit log entries" },
        }),
        requests: integer(10_000, {
          minimum: 0,
          maximum: 1_000_000,
          description: "Recent requests in memory",
          form: { zero: "none", order: -1 },
        }),
      },
      "Retention of the history",
      { group: "retention" },
    ),
    requests: group(
      {
        ids: flag(
          true,
          "Send X-Request-Id to targets and clients; the ID of a trusted proxy is preserved",
          {
            title: "Request ids",
            help: "The gateway sends X-Request-Id to targets and clients and logs it. An id from a trusted proxy is preserved",
          },
        ),
        redacted_query_names: t.Array(t.String({ minLength: 1, maxLength: 64 }), {
          default: [...SECRET_NAMES],
          maxItems: 200,
          description:
            "Words in the names of query parameters whose values are masked: `key` masks `key`, `api_key` and `apiKey`",
          form: {
            title: "Masked query parameters",
            help: "Words in the names of parameters with secret values, which are shown as ***: key masks key, api_key and apiKey",
          },
        }),
      },
      "Request IDs and the log of recent requests; retention.requests is its size",
      { group: "requests" },
    ),
    fleet: group(
      {
        max_stale_sessions: milliseconds(
          900_000,
          "Milliseconds without the database of the fleet after which a node accepts no sessions in its management API, because users may have been disabled on other nodes; tokens stay valid; 0: no limit; without effect on a gateway without a fleet",
          {
            title: "Sessions are valid for",
            help: "Time without the database after which a node accepts no sessions here; tokens stay valid",
            zero: "no limit",
          },
        ),
        max_stale: milliseconds(
          0,
          "Milliseconds without the database of the fleet, or without serving its last changes, after which /readyz of a node responds with 503, so that a load balancer takes it out; 0: never; without effect on a gateway without a fleet",
          {
            title: "Ready for",
            help: "Time without the database, or without the last changes, after which /readyz of a node responds with 503",
            zero: "always ready",
          },
        ),
        unready_after: since(
          9,
          milliseconds(
            60_000,
            "Milliseconds after which /readyz of a node that does not follow its fleet (refused, outdated, diverged) responds with 503, while another node serves all changes; 0: never; without effect on a gateway without a fleet",
            {
              title: "Not ready after",
              help: "Time after which /readyz of a node that is refused, outdated or diverged responds with 503, while another node serves all changes",
              zero: "always ready",
            },
          ),
        ),
        absent_after: since(
          2,
          integer(86_400_000, {
            minimum: 60_000,
            maximum: 2_592_000_000,
            description:
              "Milliseconds for which the fleet is prepared for the return of a node that is away: the log keeps the entries that it lacks, and what its version does not know is refused",
            form: {
              title: "Prepared for a return for",
              help: "Time for which the log keeps what a node that is away lacks, and what its version does not know is refused",
            },
          }),
        ),
      },
      "Nodes that are away, or cut off from the database of their fleet; without effect on a gateway without a fleet",
      { group: "fleet" },
    ),
    discovery,
    local_ca: localCaSettings,
    plugins_directory: since(
      7,
      nullable(
        t.String({
          pattern: "^/[^\\0]*$",
          errorMessage: "must be an absolute path",
          maxLength: 4096,
        }),
        "Directory of plugins of your own, without --plugins-dir, which precedes it; only an admin may set it. Only root and the user of the gateway may be able to write to it, and it must be apart from the data directory and --log-dir",
        {
          title: "Directory",
          help: "Path on the gateway's machine, in a fleet the same on all nodes. Only root and the gateway's user may be able to write there. --plugins-dir precedes it",
          example: "/etc/sluice/plugins",
          group: "plugins",
        },
      ),
    ),
    limits,
  },
  { additionalProperties: false, title: "Settings", form },
);

export type SettingsInput = Static<typeof settingsInput>;
export type Settings = Readonly<SettingsInput> & { readonly updated_at: string };
