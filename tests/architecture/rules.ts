// The rooms of src/, what each may import and why: data only, read by the checker beside it.

/** Marks a room that may import every other one except the two entry files. */
export const EVERYTHING = "everything";

export interface Room {
  /** Rooms that this one may import. */
  readonly imports: readonly string[] | typeof EVERYTHING;
  /** Rooms taken out of EVERYTHING again. */
  readonly except?: readonly string[];
  /** Pure rooms neither read files nor open sockets. */
  readonly pure?: true;
  /** Completes the sentence "… because". */
  readonly reason: string;
}

/** One row per room: a folder of src/, or one of the files that stand directly in it. */
export const ROOMS: Readonly<Record<string, Room>> = {
  model: {
    imports: [],
    pure: true,
    reason: "the words of the product must be readable without any of the product",
  },
  http: {
    imports: [],
    pure: true,
    reason: "HTTP knowledge is pure, so that every RFC rule can be tested without a socket",
  },
  net: {
    imports: [],
    pure: true,
    reason: "addresses and wire formats are parsed from bytes that somebody else reads",
  },
  crypto: {
    imports: [],
    reason: "keys, tokens and certificates are handled without knowing whose they are",
  },
  "shared-memory": {
    imports: [],
    reason: "counters are layouts over a buffer, and both planes read them",
  },
  system: {
    imports: [],
    reason: "calls of the operating system that Bun does not have know nothing of their callers",
  },
  "shared-counters": {
    imports: [],
    reason: "it counts on a server for any plugin, and only workers talk to that server",
  },
  dialer: {
    imports: ["net"],
    reason: "it decides by address alone, whatever asks it to connect",
  },
  oidc: {
    imports: ["net", "crypto"],
    reason: "single sign-on and plugins speak one protocol, and requests are sent by their callers",
  },
  pdk: {
    imports: ["model", "http", "net", "crypto", "oidc"],
    reason: "a plugin written against it must not depend on how a worker serves",
  },
  plugins: {
    imports: ["pdk"],
    reason: "a plugin is one file that the plugin kit alone supports",
  },
  snapshot: {
    imports: ["model", "pdk", "http", "net"],
    pure: true,
    reason:
      "the contract between the planes belongs to neither; plugin definitions come as arguments",
  },
  dataplane: {
    imports: [
      ...["snapshot", "pdk", "http", "net", "dialer", "crypto"],
      ...["shared-memory", "shared-counters", "system"],
    ],
    reason: "a worker never sees a database, a user or an API, and plugins are handed to it",
  },
  supervisor: {
    imports: ["model", "snapshot", "shared-memory", "system"],
    reason: "it rolls versions out to workers without knowing what a version means",
  },
  store: {
    imports: ["model"],
    reason: "rows are stored and read; what a change means is decided in control",
  },
  fleet: {
    imports: ["model", "control", "auth", "observe"],
    reason:
      "nodes share changes; what a change means is decided in control, and only main joins the two",
  },
  control: {
    imports: [
      ...["model", "snapshot", "store", "supervisor", "dialer"],
      ...["crypto", "net", "http", "shared-memory"],
    ],
    reason: "the change path and the resources must not know that they are called over HTTP",
  },
  auth: {
    imports: ["control", "model", "crypto", "net", "http", "oidc"],
    reason: "users, sessions and sign-in decide who changes something, never what a change means",
  },
  observe: {
    imports: ["control", "model", "snapshot", "net", "http", "shared-memory"],
    reason: "metrics, requests, statistics and alerts read what happens and change nothing",
  },
  acme: {
    imports: ["control", "model", "snapshot", "crypto", "net"],
    reason: "certificates are requested and renewed by changes, as a user would make them",
  },
  applications: {
    imports: ["acme", "control", "model", "snapshot", "store", "crypto", "net"],
    reason: "an application composes resources and certificates, which do not know of it",
  },
  import: {
    imports: [
      ...["applications", "acme", "observe", "control"],
      ...["model", "snapshot", "store", "crypto", "net", "http"],
    ],
    reason:
      "whole configurations consist of objects of every kind, and nothing depends on documents",
  },
  discovery: {
    imports: ["import", "applications", "control", "model", "crypto", "net"],
    reason: "containers and files become objects by changes, as a user would make them",
  },
  "plugin-directory": {
    imports: ["control", "model", "pdk"],
    reason: "a file becomes a plugin by a change, and its code runs in threads of its own",
  },
  "control-plane.ts": {
    imports: [
      ...["auth", "acme", "observe", "applications", "import", "discovery", "control"],
      ...["model", "snapshot", "http", "crypto"],
    ],
    reason: "it composes the use cases, which know nothing of one another",
  },
  api: {
    imports: [
      ...["control", "auth", "acme", "observe"],
      ...["applications", "import", "discovery", "model"],
    ],
    reason: "a route only decodes, authorises, calls a use-case and replies",
  },
  ui: {
    imports: [],
    reason: "the browser runs it; it shares types with the model and talks to the API for the rest",
  },
  cli: {
    imports: EVERYTHING,
    except: ["dataplane", "plugins"],
    reason: "traffic is served in workers only, never in the thread of a command",
  },
  "worker.ts": {
    imports: ["dataplane", "plugins", "pdk"],
    reason: "it is the one place that hands the plugins to the data plane",
  },
  "importer.ts": {
    imports: ["api", "control", "import", "pdk", "plugins"],
    reason: "it reads documents beside the main thread, as the API would",
  },
  "plugin-reader.ts": {
    imports: ["plugin-directory"],
    reason: "it reads plugins beside the main thread, which runs no code from a directory",
  },
  "regex-checker.ts": {
    imports: ["snapshot"],
    reason: "it checks regular expressions beside the main thread",
  },
  "main.ts": {
    imports: EVERYTHING,
    reason: "it is the composition root of the executable",
  },
  "log.ts": { imports: [], reason: "everything imports it" },
  "clock.ts": { imports: [], reason: "everything imports it" },
  "garbage.ts": { imports: [], reason: "both planes watch the heaps of their threads" },
  "pace.ts": { imports: [], reason: "long work is cut into slices in every thread" },
};

/** Arrows for types alone, beside those of the table above, and why what is imported stays unknown to a reader's eye. */
export const TYPE_ARROWS: Readonly<Record<string, string>> = {
  "dataplane -> model": "a version carries objects as the model declares them",
  "ui -> model": "forms and pages show objects as the model declares them",
  "worker.ts -> snapshot": "it passes messages on",
  "api -> control-plane.ts": "it gets the use cases from there",
  "auth -> control-plane.ts": "recovery works on the use cases of a gateway that does not run",
  "control-plane.ts -> supervisor": "it hands events of workers to the use cases",
  "control-plane.ts -> shared-memory": "it hands the board of targets to the use cases",
  "control-plane.ts -> net": "it hands the rules of destinations to the use cases",
  "acme -> dialer": "main hands it the dialer",
  "applications -> dialer": "main hands it the dialer",
  "auth -> dialer": "main hands it the dialer",
  "observe -> dialer": "main hands it the dialer",
  "fleet -> crypto": "main hands it the box of secrets",
  "observe -> crypto": "main hands it the box of secrets",
  "fleet -> store": "main hands it the commit of the database",
  "fleet -> snapshot": "the outcome of a rollout is reported to other nodes",
  "supervisor -> net": "main hands it the rules of destinations",
  "supervisor -> pdk": "it runs what plugins declare for the main thread, and knows no plugin",
  "snapshot -> shared-memory": "a version carries handles of memory to the workers",
  "snapshot -> shared-counters": "a message carries the settings of the counter server",
  "shared-memory -> pdk": "it implements what the plugin kit declares",
  "shared-counters -> pdk": "it implements what the plugin kit declares",
  "shared-counters -> shared-memory": "the state of the connection stands on the board",
  "applications -> pdk": "a check asks what the kit of a plugin would",
  "observe -> pdk": "metrics of plugins are shown as plugins declare them",
  "observe -> acme": "metrics count orders",
  "discovery -> snapshot": "labels configure plugins, whose definitions come as arguments",
  "plugin-directory -> snapshot": "refused instances are those of a version",
  "import -> auth": "documents hold users and tokens",
};

/** Files that every room may import. */
export const SHARED_FILES: readonly string[] = ["log.ts", "clock.ts", "garbage.ts", "pace.ts"];

export interface BuildTimeRule {
  readonly room: string;
  /** Below src/. */
  readonly file: string;
  readonly reason: string;
}

/** Files that a room may import as macros only: they run when it is bundled, and what they return stands in the bundle. */
export const BUILD_TIME_RULES: readonly BuildTimeRule[] = [
  {
    room: "ui",
    file: "model/form-schema.ts",
    reason: "a field is defined once, in the model, and its form follows from it",
  },
];

/** Files that nothing may import: each starts a thread. */
export const ENTRY_FILES: readonly string[] = [
  "main.ts",
  "worker.ts",
  "importer.ts",
  "plugin-reader.ts",
  "regex-checker.ts",
];

export interface PackageRule {
  readonly packages: RegExp;
  readonly room: string;
  /** Another room that may import some of them. */
  readonly except?: { readonly packages: RegExp; readonly room: string };
  readonly reason: string;
}

/** npm packages are free, except these, which stay in one room. */
export const PACKAGE_RULES: readonly PackageRule[] = [
  {
    packages: /^(elysia|@elysiajs\/.+)(\/|$)/,
    room: "api",
    reason: "the web framework only routes and describes the management API",
  },
  {
    packages: /^(drizzle-orm(\/|$)|bun:sqlite$)/,
    room: "store",
    // Declares the tables of the fleet; its statements are SQL, because eleven of them need no query builder.
    except: { packages: /^drizzle-orm\/pg-core$/, room: "fleet" },
    reason: "one room writes the database",
  },
  {
    packages: /^(react|react-dom|wouter|uplot|uqr|@mantine\/.+|@tanstack\/.+|@tabler\/.+)(\/|$)/,
    room: "ui",
    reason: "no browser code may end up in the gateway",
  },
];

/** Rooms that may import only the packages that are kept for them above: what else they take, browsers would have to load. */
export const ROOMS_OF_OWN_PACKAGES: readonly string[] = ["ui"];

/** Modules that read files, open sockets or start programs: not for pure rooms. */
export const IMPURE_MODULES =
  /^(node:)?(fs|fs\/promises|net|tls|dgram|http|https|http2|child_process|cluster|worker_threads|dns|dns\/promises)$|^bun:sqlite$/;

export interface AssetRule {
  readonly room: string;
  /** Matched against the path from the top of the repository. */
  readonly path: RegExp;
  readonly reason: string;
}

/** Files that are no code and are embedded in the executable, with the rooms that may embed them. */
export const ASSET_RULES: readonly AssetRule[] = [
  { room: "store", path: /^drizzle\/[^/]+\.(sql|json)$/, reason: "migrations" },
  { room: "fleet", path: /^drizzle\/fleet\/.+\.sql$/, reason: "migrations of the fleet's tables" },
  { room: "api", path: /^(src\/ui|src\/api|dist\/ui)\//, reason: "the built pages" },
  { room: "api", path: /^dist\/packed\/reference\.js$/, reason: "the API reference" },
  { room: "snapshot", path: /^dist\/packed\/recheck\.js$/, reason: "the judge of expressions" },
  { room: "plugins", path: /^dist\/packed\/quickjs\.js$/, reason: "the engine of scripts" },
  { room: "observe", path: /^dist\/packed\/nodemailer\.js$/, reason: "what few gateways send" },
  { room: "ui", path: /^src\/ui\//, reason: "styles and pictures" },
  { room: "cli", path: /^package\.json$/, reason: "the version" },
  { room: "cli", path: /^src\/cli\/plugin-template\//, reason: "what new plugins begin with" },
  { room: "main.ts", path: /^package\.json$/, reason: "the version" },
];

export const MAX_LINES = 400;

/** Hubs: files that hold one thought together, so that nobody packs lines to stay below the limit. */
export const HUBS: Readonly<
  Record<string, { readonly maxLines: number; readonly reason: string }>
> = {
  "control/change.ts": { maxLines: 600, reason: "the only path of a mutation" },
  "dataplane/request/respond.ts": { maxLines: 600, reason: "the only exit of the request path" },
  "dataplane/server/http2/connection.ts": {
    maxLines: 600,
    reason: "the whole life of a client's HTTP/2 connection",
  },
  "supervisor/worker-slot.ts": { maxLines: 600, reason: "the whole life of a worker" },
  "acme/engine.ts": { maxLines: 600, reason: "the order of all work on certificates" },
};

/** Rooms without circles of imports even where only types are imported: whoever reads one file there needs no other one first. */
export const ROOMS_WITHOUT_TYPE_CIRCLES: readonly string[] = [
  ...["http", "net", "crypto", "system", "shared-memory", "shared-counters", "dialer", "oidc"],
  ...["pdk", "snapshot", "dataplane", "supervisor", "store", "auth", "observe", "acme", "fleet"],
  ...["applications", "discovery", "plugin-directory", "api"],
];

/** Names that say nothing about what is inside. */
export const EMPTY_NAMES = /(^|\/)(utils?|helpers?|misc|common|shared|types)(\.tsx?$|\/)/;

/**
 * Files that open connections outwards beside the dialer, and why no configuration of an editor chooses where these lead. Any other file
 * asks `dialer/` for a connection, which decides about the destination.
 */
export const WAYS_OUT: Readonly<Record<string, string>> = {
  "dialer/dialer.ts": "it decides about destinations for all others",
  "dataplane/upstream/dial.ts":
    "targets; names/resolved-name.ts decides about each address when its name is resolved, target-rules.ts about literal ones",
  "dataplane/stream/dial.ts": "targets of streams, with addresses decided on in the same places",
  "dataplane/stream/udp-session.ts": "the same for datagrams",
  "dataplane/stream/udp-port.ts": "it answers clients from the port that they sent to",
  "dataplane/names/name-resolver.ts": "name servers of the system and of --dns-servers",
  "dataplane/server/tls-self-test.ts": "a socket of its own, which it opens for that",
  "dataplane/plugin/callout.ts": "its connections are made by the dialer that it creates",
  "acme/dns/dns-exchange.ts": "it connects to an address that the dialer has decided on",
  "acme/dns/lookup.ts":
    "name servers of the system and of --dns-servers, and those that serve a zone, on port 53 only",
  "plugins/ldap-auth/directory.ts":
    "StartTLS over a connection of the dialer; the package gets its sockets from there",
  "plugins/ldap-auth.ts": "it loads the package for directory.ts",
  "plugins/access-log/socket-sinks.ts": "datagrams to an address that the dialer has decided on",
  "observe/alerts/mailer.ts":
    "it loads the package for smtp.ts, which gets its socket from the dialer",
  "discovery/docker-client.ts":
    "the API of containers, which only an admin sets; a unix socket as a rule",
  "fleet/peer-reads.ts":
    "the management API of other nodes, by --advertise, signed with the key of the fleet",
  "fleet/postgres-connection.ts": "the database of --store",
  "shared-counters/connection.ts": "the server of --counters",
  "shared-counters/diagnosis.ts": "the server of --counters",
  "supervisor/port-probe.ts": "it binds ports and connects nowhere",
  "cli/control-socket.ts": "the control socket in the data directory",
  "cli/healthcheck.ts": "a command of a person at the machine",
  "cli/replay.ts": "a command of a person at the machine, who names both gateways",
  "cli/management-client.ts": "a command of a person at the machine",
  "cli/version.ts": "a command of a person at the machine",
};

/** In the text of a file: whether it opens a connection, or imports a package that does. */
export const OPENS_CONNECTIONS = new RegExp(
  [
    // Not a method of that name.
    String.raw`(?<![\w.#"'-]|async )fetch\((?!\w+: )`,
    String.raw`globalThis\.fetch|Bun\.(?:connect|udpSocket|FetchSession|dns|s3|redis|sql)\b`,
    String.raw`new (?:WebSocket|EventSource|RedisClient|SQL|Bun\.\w+Session)\(`,
    String.raw`^import (?!type)[^;]*\b(?:connect|createConnection|createSocket|request|get|Agent|Resolver|promises|RedisClient|SQL)\b[^;]*from "(?:node:(?:net|tls|http|https|http2|dgram|dns|dns/promises)|bun)"`,
    String.raw`import \* as \w+ from "(?:node:)?(?:net|tls|http|https|http2|dgram|dns)"`,
    `from "(?:net|tls|https?|http2|dgram|dns|undici|axios|ws|nodemailer|ldapts|ioredis|pg)(?:/[^"]*)?"`,
    String.raw`import\("(?:node:(?:net|tls|https?|http2|dgram|dns)[^"]*|[^"]*packed/nodemailer\.js|ldapts|undici|ws)"\)`,
    String.raw`getBuiltinModule\("node:\w+"\)\s*\.(?:connect|request|get|createConnection|createSocket)\b`,
  ].join("|"),
  "m",
);
