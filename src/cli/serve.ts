// The command `serve`: decodes its flags; main assembles the gateway.
import { statSync } from "node:fs";
import { isIP } from "node:net";
import { availableParallelism } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import type { ConfigFiles } from "../discovery/files.ts";
import type { ParseJson } from "../import/transfer/source.ts";
import { type LogLevel, logLevels } from "../log.ts";
import { type HttpEngine, httpEngines } from "../model/listener.ts";
import { suggestion } from "../model/suggestion.ts";
import { decodeNetworks, NETWORK_WORDS } from "./admin-networks.ts";
import type { AdminTlsFiles } from "./admin-tls.ts";
import type { Command } from "./command.ts";
import { counterFlags, decodeCounters } from "./counter-flags.ts";
import type { CountersAddress } from "../shared-counters/address.ts";
import { decodeFirstAdmin, firstAdminFlags, type FirstAdminOptions } from "./first-admin.ts";
import { decodeFleet, type FleetOptions, nodeFlags } from "./fleet-flags.ts";
import { type Address, type Flag, type Flags, parseAddress, parseFlags } from "./flags.ts";
import { pluginsDirFlag } from "./plugins-dir.ts";
import { UsageError } from "./usage-error.ts";

export interface ServeOptions {
  readonly dataDir: string;
  readonly admin: Address;
  /** Networks that may use the management API while the settings have none; null: not given. */
  readonly adminAllow: readonly string[] | null;
  /** Certificate files of the management API; null: no TLS. */
  readonly adminTls: AdminTlsFiles | null;
  /** The user to create while no user exists; null: none. */
  readonly firstAdmin: FirstAdminOptions | null;
  /** Null: not given, so the stored listener applies, or the default at the first start. */
  readonly http: Address | null;
  readonly https: Address | null;
  readonly workers: number;
  readonly logLevel: LogLevel;
  /** Name servers to resolve targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  /** Serves all listeners that can do with it; null: each has its own. */
  readonly httpEngine: HttpEngine | null;
  /** Programs that DNS providers of the type exec may run. */
  readonly dnsPrograms: readonly string[];
  /** Directory in which plugins may write files, beside the data directory; null: none. */
  readonly logDir: string | null;
  readonly allowUnauthenticatedRemote: boolean;
  /** Whether to take over from a gateway that serves the data directory. */
  readonly takeOver: boolean;
  /** The raw arguments of `serve`. */
  readonly words: readonly string[];
  /** The configuration file; null: the management API changes the configuration. */
  readonly config: string | null;
  /** The directory of configuration files that each own what they name; null: there is none. */
  readonly configDir: string | null;
  /** Of one file of that directory. */
  readonly configDirMaxBytes: number;
  /** The directory of plugins that are not built in; null: there is none. */
  readonly pluginsDir: string | null;
  /** Null: this gateway is part of no fleet. */
  readonly fleet: FleetOptions | null;
  /** The server of shared counters; null: none. */
  readonly counters: CountersAddress | null;
}

export const defaultHttp: Address = { hostname: "0.0.0.0", port: 8080 };
export const defaultHttps: Address = { hostname: "0.0.0.0", port: 8443 };

const MAX_WORKERS = 256;
const DEFAULT_FILE_BYTES = 8_388_608;
const MAX_FILE_BYTES = 67_108_864;

/** macOS gives all connections of a shared port to one listener: more workers would be idle. */
const defaultWorkers = () => (process.platform === "darwin" ? 1 : availableParallelism());

/** Flags of several commands. */
export const dataDirFlag: Flag = {
  name: "data-dir",
  value: "DIR",
  description: "Directory of the configuration and the keys",
  fallback: "./data",
};

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "config",
    value: "FILE",
    description: "Configuration file to serve and to follow; the management API is then read-only",
  },
  {
    name: "config-dir",
    value: "DIR",
    description:
      "Directory of configuration files (YAML, JSON) to follow: each owns what it names, and the management API changes the rest. Only root and the user of the gateway may be able to write to it",
  },
  {
    name: "config-dir-max-bytes",
    value: "BYTES",
    description: "Maximum size of one file of --config-dir, up to 67108864",
    fallback: String(DEFAULT_FILE_BYTES),
  },
  pluginsDirFlag,
  ...nodeFlags,
  ...counterFlags,
  {
    name: "admin",
    value: "ADDRESS:PORT",
    description: "Address of the management API",
    fallback: "127.0.0.1:9080",
  },
  {
    name: "admin-allow",
    value: "NETWORKS",
    description: `Networks that may use the management API: ${NETWORK_WORDS}. Required for an address that other machines reach; applies while settings.admin_allowed_cidrs is empty`,
    repeats: true,
  },
  {
    name: "admin-tls-cert",
    value: "FILE",
    description: "Certificate chain (PEM) of the management API, which then uses TLS",
  },
  {
    name: "admin-tls-key",
    value: "FILE",
    description: "Private key (PEM) of --admin-tls-cert",
  },
  ...firstAdminFlags,
  {
    name: "http",
    value: "ADDRESS:PORT",
    description:
      "Address of the HTTP listener; only used at the first start, then stored in the database",
    fallback: "0.0.0.0:8080",
  },
  {
    name: "https",
    value: "ADDRESS:PORT",
    description:
      "Address of the HTTPS listener; only used at the first start, then stored in the database",
    fallback: "0.0.0.0:8443",
  },
  {
    name: "workers",
    value: "N",
    description: "Number of worker threads",
    fallback: "one per processor; 1 on macOS",
  },
  {
    name: "dns-servers",
    value: "ADDRESS[:PORT],...",
    description: "Name servers to resolve targets and to check records of DNS providers",
    fallback: "the system's",
  },
  {
    name: "dns-exec",
    value: "PATH",
    description:
      "Program that DNS providers of the type exec may run; repeatable (in the environment: separated by commas)",
    repeats: true,
  },
  {
    name: "http-engine",
    value: "ENGINE",
    description:
      "HTTP engine of all listeners, whatever their settings say: sluice, or bun, which serves all that it can; a way back until the settings are changed",
    choices: httpEngines,
  },
  {
    name: "log-dir",
    value: "DIR",
    description:
      "Directory in which plugins may write access logs, beside the directory logs of the data directory",
  },
  {
    name: "log-level",
    value: "LEVEL",
    description: `Log level: ${logLevels.join(", ")}`,
    choices: logLevels,
    fallback: "info",
  },
  {
    name: "allow-unauthenticated-remote",
    value: null,
    description:
      "Allow an address of the management API that other machines reach while no user exists",
  },
  {
    name: "take-over",
    value: null,
    description:
      "Take over from the gateway that serves the data directory, which then drains; see upgrade",
  },
];

/** `serve` is a parameter, because the command line does not know the parts that it starts. */
export function createServe(serve: (options: ServeOptions) => Promise<number>): Command {
  return {
    name: "serve",
    summary: "Serve traffic and the management API until SIGTERM or SIGINT",
    details:
      "A port of 0 means a free one. On SIGTERM or SIGINT the gateway accepts no new connections and requests in\n" +
      "flight have settings.limits.shutdown_timeout to finish; a second signal stops it at once.",
    flags,
    run: (argv, { env }) => serve(decodeOptions(parseFlags(flags, argv, env), argv)),
  };
}

/** Throws a UsageError that names the flag. */
export function decodeOptions(given: Flags, words: readonly string[] = []): ServeOptions {
  const address = (flag: string) => {
    const text = given.get(flag);
    return text === undefined ? null : parseAddress(flag, text);
  };
  return {
    dataDir: resolve(given.get("data-dir") ?? "./data"),
    admin: address("admin") ?? { hostname: "127.0.0.1", port: 9080 },
    adminAllow: decodeAllowed(given.all("admin-allow")),
    adminTls: decodeAdminTls(given.get("admin-tls-cert"), given.get("admin-tls-key")),
    firstAdmin: decodeFirstAdmin(given),
    http: address("http"),
    https: address("https"),
    workers: decodeWorkers(given.get("workers")),
    dnsServers: decodeDnsServers(given.get("dns-servers")),
    dnsPrograms: decodePrograms(given.all("dns-exec")),
    httpEngine: decodeHttpEngine(given.get("http-engine")),
    logDir: decodePath(given.get("log-dir")),
    logLevel: decodeLogLevel(given.get("log-level") ?? "info"),
    config: decodePath(given.get("config")),
    configDir: decodePath(given.get("config-dir")),
    configDirMaxBytes: decodeFileBytes(given.get("config-dir-max-bytes")),
    pluginsDir: decodePath(given.get("plugins-dir")),
    fleet: decodeFleet(given),
    counters: decodeCounters(given),
    allowUnauthenticatedRemote: given.has("allow-unauthenticated-remote"),
    takeOver: given.has("take-over"),
    words: words.filter((word) => word !== "--take-over"),
  };
}

const decodeAllowed = (texts: readonly string[]) =>
  texts.length === 0 ? null : decodeNetworks("admin-allow", texts);

function decodeHttpEngine(name: string | undefined): HttpEngine | null {
  const engine = httpEngines.find((one) => one === name) ?? null;
  if (name !== undefined && engine === null)
    throw new UsageError(
      `--http-engine must be one of ${httpEngines.join(", ")}${suggestion(name, httpEngines)}`,
    );
  return engine;
}

const decodePath = (path: string | undefined) => (path === undefined ? null : resolve(path));

function decodeAdminTls(cert: string | undefined, key: string | undefined): AdminTlsFiles | null {
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined) throw new UsageError("--admin-tls-key needs --admin-tls-cert as well");
  if (key === undefined) throw new UsageError("--admin-tls-cert needs --admin-tls-key as well");
  return { cert: resolve(cert), key: resolve(key) };
}

/** What `--config-dir` asks for; null: nothing. */
export function configFilesOf(options: ServeOptions, parseJson: ParseJson): ConfigFiles | null {
  const { configDir: directory, configDirMaxBytes: maxBytes, dataDir, logDir } = options;
  if (directory === null) return null;
  const logs = join(dataDir, "logs");
  return { directory, maxBytes, written: logDir === null ? [logs] : [logs, logDir], parseJson };
}

function decodeWorkers(text: string | undefined): number {
  if (text === undefined) return Math.min(defaultWorkers(), MAX_WORKERS);
  const workers = Number(text);
  if (!/^\d+$/.test(text) || workers < 1 || workers > MAX_WORKERS)
    throw new UsageError(
      `--workers: must be a whole number from 1 to ${MAX_WORKERS}, not "${text}"`,
    );
  return workers;
}

function decodeFileBytes(text = String(DEFAULT_FILE_BYTES)): number {
  const bytes = Number(text);
  if (!/^\d+$/.test(text) || bytes < 1 || bytes > MAX_FILE_BYTES)
    throw new UsageError(
      `--config-dir-max-bytes: must be a whole number from 1 to ${MAX_FILE_BYTES}, not "${text}"`,
    );
  return bytes;
}

function decodeDnsServers(text: string | undefined): readonly string[] {
  const servers = (text ?? "").split(",").map((server) => server.trim());
  const wrong = servers.find((server) => server !== "" && !isServer(server));
  if (wrong !== undefined)
    throw new UsageError(
      `--dns-servers: must be IP addresses, each with a port if it is not 53, not "${wrong}"`,
    );
  return servers.filter((server) => server !== "");
}

/** Absolute paths without normalization, compared literally: a provider runs exactly this file. */
function decodePrograms(paths: readonly string[]): readonly string[] {
  for (const path of paths) {
    if (!isAbsolute(path))
      throw new UsageError(`--dns-exec: must be the absolute path of a program, not "${path}"`);
    const file = statSync(path, { throwIfNoEntry: false });
    if (file === undefined || !file.isFile() || (file.mode & 0o111) === 0)
      throw new UsageError(`--dns-exec: ${path} is not an executable file`);
  }
  return paths;
}

function isServer(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const isAddress = bracketed === undefined ? isIP(plain ?? "") === 4 : isIP(bracketed) === 6;
  return isAddress && Number(port) > 0 && Number(port) <= 65_535;
}

function decodeLogLevel(text: string): LogLevel {
  const level = logLevels.find((word) => word === text);
  if (level === undefined)
    throw new UsageError(
      `--log-level: must be one of ${logLevels.join(", ")}, not "${text}"${suggestion(text, logLevels)}`,
    );
  return level;
}
