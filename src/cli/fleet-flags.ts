// The flags that name a fleet's database and a node; opens no connection.
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import type { PostgresAddress } from "../fleet/postgres-connection.ts";
import { privateNetworks } from "../control/admin-network.ts";
import { compileCidrs } from "../net/cidr.ts";
import { fileProblem } from "../model/file-problem.ts";
import { type Flag, type Flags, parseAddress } from "./flags.ts";
import { readMembership } from "./fleet-membership.ts";
import { UsageError } from "./usage-error.ts";

/** How a command reaches the database. */
export const storeFlags: readonly Flag[] = [
  {
    name: "store",
    value: "URL",
    description:
      "PostgreSQL database of a fleet (postgres://user@host/database?sslmode=verify-full): all nodes that name it have one configuration",
  },
  {
    name: "store-fallback-hosts",
    value: "HOST[:PORT],...",
    description:
      "Other hosts of the database of --store, tried in order while it does not respond or is a standby",
  },
  {
    name: "store-password-file",
    value: "FILE",
    description:
      "File with the password for --store, which a list of processes would show otherwise",
  },
];

export const nodeFlags: readonly Flag[] = [
  ...storeFlags,
  {
    name: "node-name",
    value: "NAME",
    description: "Name of this node in its fleet",
    fallback: "the host name",
  },
  {
    name: "advertise",
    value: "URL",
    description:
      "Where other nodes and people reach the management API of this node: https, or http with a private address",
  },
];

/** This node in its fleet. */
export interface FleetOptions {
  readonly database: PostgresAddress;
  /** Whether `database` is that of the data directory, where `fleet join` has put it. */
  readonly isJoined: boolean;
  readonly nodeName: string;
  /** Null: not given. */
  readonly advertise: string | null;
}

/** In a word of a command, which the list of processes shows. */
export const PASSWORD_IN_URL = /^(?:--store=)?postgres(?:ql)?:\/\/[^/]*:[^/@]+@/;

const NODE_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

export const dataDirOf = (given: Flags): string => resolve(given.get("data-dir") ?? "./data");

/** Null: neither --store nor an invitation has made it part of a fleet. */
export function decodeFleet(given: Flags): FleetOptions | null {
  const database = decodeDatabase(given);
  const joined = given.get("store") === undefined ? readMembership(dataDirOf(given)) : null;
  const nodeName = given.get("node-name") ?? joined?.node_name ?? hostname();
  const advertise = given.get("advertise") ?? null;
  if (database === null) return null;
  if (given.get("config") !== undefined)
    throw new UsageError(
      "--store: not with --config, because the file is the source of all nodes then",
    );
  requireNodeName(nodeName);
  const isJoined = joined !== null;
  return {
    database,
    isJoined,
    nodeName,
    advertise: advertise === null ? null : advertised(advertise),
  };
}

/** Throws a UsageError unless it is the name of a node. */
export function requireNodeName(name: string): void {
  if (!NODE_NAME.test(name))
    throw new UsageError(
      `--node-name: must be 1 to 63 letters, digits, ".", "-" and "_", not "${name}"`,
    );
}

/** Without --store the one that `fleet join` has left in the data directory, or null. Throws a UsageError that names the flag. */
export function decodeDatabase(given: Flags): PostgresAddress | null {
  const store = given.get("store");
  if (store === undefined) {
    const joined = readMembership(dataDirOf(given));
    return joined && { urls: joined.urls, rootCertificate: joined.root_certificate };
  }
  const url = URL.parse(store);
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === "")
    throw new UsageError(
      "--store: must be the URL of a PostgreSQL database, such as postgres://user@host:5432/sluice",
    );
  if (url.hostname.includes(","))
    throw new UsageError("--store: must have one host; name the others in --store-fallback-hosts");
  const file = given.get("store-password-file");
  if (file !== undefined) url.password = encodeURIComponent(passwordIn(file));
  const rootCertificate = url.searchParams.get("sslrootcert");
  url.searchParams.delete("sslrootcert");
  return {
    urls: [url.href, ...fallbacks(given).map((host) => withHost(url, host))],
    rootCertificate: rootCertificate === null ? null : textOf("store", rootCertificate),
  };
}

const fallbacks = (given: Flags) =>
  (given.get("store-fallback-hosts") ?? "")
    .split(",")
    .map((host) => host.trim())
    .filter((host) => host !== "");

function withHost(url: URL, host: string): string {
  const other = new URL(url);
  const hasPort = /:\d+$/.test(host);
  const address = parseAddress(
    "store-fallback-hosts",
    hasPort ? host : `${host}:${url.port === "" ? 5432 : url.port}`,
  );
  other.hostname = address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname;
  other.port = String(address.port);
  return other.href;
}

const passwordIn = (file: string) => textOf("store-password-file", file).replace(/\r?\n$/, "");

/** The text of a file that a flag names. */
export function textOf(flag: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`--${flag}: ${path} cannot be read: ${fileProblem(error)}`);
  }
}

const isPrivate = compileCidrs(privateNetworks);

/** Other nodes send tokens there: encrypted, or not beyond a private network. */
function advertised(text: string): string {
  const url = URL.parse(text);
  const isPlain = url?.protocol === "http:" && isPrivate(url.hostname.replace(/^\[|\]$/g, ""));
  if (url === null || !(url.protocol === "https:" || isPlain) || url.username !== "")
    throw new UsageError(
      `--advertise: must be an https URL, or an http URL with a private address, not "${text}"`,
    );
  if (url.href !== `${url.origin}/`)
    throw new UsageError(`--advertise: must end after the host and port, not "${text}"`);
  return url.origin;
}
