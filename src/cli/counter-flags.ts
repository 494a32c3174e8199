// The flags that name the server of shared counters; opens no connection.
import { createSecureContext } from "node:tls";
import type { Log } from "../log.ts";
import type { CountersAddress } from "../shared-counters/address.ts";
import type { Flag, Flags } from "./flags.ts";
import { textOf } from "./fleet-flags.ts";
import { UsageError } from "./usage-error.ts";

export const counterFlags: readonly Flag[] = [
  {
    name: "counters",
    value: "URL",
    description:
      "Valkey or Redis server on which plugins count over all nodes (redis://user@host:6379/0, rediss:// for TLS, ?ca=FILE)",
  },
  {
    name: "counters-password-file",
    value: "FILE",
    description:
      "File with the password for --counters, which a list of processes would show otherwise",
  },
];

/** Files that a URL may name. */
const FILES = ["ca", "cert", "key"] as const;
const PARAMETERS: readonly string[] = [...FILES, "timeout"];
/** Milliseconds. */
const TIMEOUT = { initial: 50, least: 5, most: 1000 } as const;

/** Null without --counters. Throws a UsageError that names the flag and does not repeat the URL, which may hold a password. */
export function decodeCounters(given: Flags): CountersAddress | null {
  const text = given.get("counters");
  if (text === undefined) return null;
  const url = URL.parse(text);
  if (url === null || !/^(?:redis|valkey)s?:$/.test(url.protocol) || url.hostname === "")
    throw new UsageError(
      "--counters: must be the URL of a Valkey or Redis server, such as redis://user@host:6379/0",
    );
  if (!/^\/?\d{0,9}$/.test(url.pathname))
    throw new UsageError("--counters: the path must be the number of a database, such as /0");
  const unknown = [...url.searchParams.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    throw new UsageError(
      `--counters: knows the parameters ${PARAMETERS.join(", ")}, not "${unknown}"`,
    );
  const passwordFile = given.get("counters-password-file");
  if (passwordFile !== undefined)
    url.password = encodeURIComponent(
      textOf("counters-password-file", passwordFile).replace(/\r?\n$/, ""),
    );
  const [ca = null, cert = null, key = null] = FILES.map((name) => {
    const path = url.searchParams.get(name);
    return path === null ? null : textOf("counters", path);
  });
  if ((cert === null) !== (key === null))
    throw new UsageError("--counters: a client certificate needs both cert and key");
  if ((ca !== null || cert !== null) && !/^(?:rediss|valkeys):$/.test(url.protocol))
    throw new UsageError("--counters: certificates are only for TLS, which rediss:// turns on");
  requireUsable({ ca, cert, key });
  const timeoutMs = decodeTimeout(url.searchParams.get("timeout"));
  url.search = "";
  return { url: url.href, ca, cert, key, timeoutMs };
}

function requireUsable(files: Pick<CountersAddress, (typeof FILES)[number]>): void {
  const given = Object.fromEntries(Object.entries(files).filter(([, text]) => text !== null));
  try {
    createSecureContext(given);
  } catch (error) {
    const { message } = error as Error;
    throw new UsageError(`--counters: ${Object.keys(given).join(", ")}: not usable (${message})`);
  }
}

function decodeTimeout(text: string | null): number {
  const { initial, least, most } = TIMEOUT;
  const timeout = Number(text ?? initial);
  if (!Number.isInteger(timeout) || timeout < least || timeout > most)
    throw new UsageError(
      `--counters: timeout must be a number of milliseconds from ${least} to ${most}, not "${text}"`,
    );
  return timeout;
}

const PASSWORD_IN_URL = /^(?:--counters=)?(?:redis|valkey)s?:\/\/[^/]*:[^/@]+@/;

/** `words`: the command line. */
export function warnAboutPassword(words: readonly string[], log: Log): void {
  if (words.some((word) => PASSWORD_IN_URL.test(word)))
    log.warn(
      "every user of this machine can see the password of --counters in the list of processes: give the URL in SLUICE_COUNTERS, or use --counters-password-file",
    );
}
