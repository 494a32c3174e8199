// Reads flags from a command line and the environment; knows no command.
import { suggestion } from "../model/suggestion.ts";
import { UsageError } from "./usage-error.ts";

export interface Flag {
  /** Without the dashes: `data-dir`. */
  readonly name: string;
  /** Placeholder of the value in the help: `DIR`. Null: the flag has no value. */
  readonly value: string | null;
  readonly description: string;
  /** The values that it takes, for completion. Default: others than these. */
  readonly choices?: readonly string[];
  /** Shown in the help. */
  readonly fallback?: string;
  /** Whether it may be repeated; in the environment commas separate the values. */
  readonly repeats?: true;
}

export interface Flags {
  /** The value on the command line or else in the environment; undefined when neither. */
  get(name: string): string | undefined;
  /** All values of a repeatable flag. */
  all(name: string): readonly string[];
  /** Whether a flag without a value was given. */
  has(name: string): boolean;
}

/** `data-dir` -> `SLUICE_DATA_DIR`. */
export const environmentName = (flag: string) =>
  `SLUICE_${flag.toUpperCase().replaceAll("-", "_")}`;

const TRUE = ["1", "true", "yes"];
const FALSE = ["", "0", "false", "no"];

/** Throws a UsageError for unknown, incomplete or repeated flags. */
export function parseFlags(
  known: readonly Flag[],
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Flags {
  const given = new Map<string, string>();
  const repeated = new Map<string, string[]>();
  const words = [...argv];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [, name = "", , inline] = /^--([^=]+)(=(.*))?$/s.exec(word) ?? [];
    if (name === "") throw new UsageError(`unexpected argument "${word}"`);
    const flag = known.find((candidate) => candidate.name === name);
    if (flag === undefined) {
      const names = known.map((candidate) => `--${candidate.name}`);
      throw new UsageError(`unknown flag --${name}${suggestion(`--${name}`, names)}`);
    }
    if (given.has(name) && flag.repeats === undefined)
      throw new UsageError(`--${name} is given twice`);
    if (flag.value === null) {
      if (inline !== undefined) throw new UsageError(`--${name} has no value`);
      given.set(name, "true");
      continue;
    }
    const value = inline ?? words.shift();
    if (value === undefined) throw new UsageError(`--${name} needs a value: ${flag.value}`);
    given.set(name, value);
    if (flag.repeats !== undefined) repeated.set(name, [...(repeated.get(name) ?? []), value]);
  }
  return {
    get: (name) => given.get(name) ?? (env[environmentName(name)] || undefined),
    all: (name) =>
      repeated.get(name) ??
      (env[environmentName(name)] ?? "")
        .split(",")
        .map((value) => value.trim())
        .filter((value) => value !== ""),
    has(name) {
      if (given.has(name)) return true;
      const variable = environmentName(name);
      const value = (env[variable] ?? "").toLowerCase();
      if (TRUE.includes(value)) return true;
      if (FALSE.includes(value)) return false;
      throw new UsageError(`${variable}: must be 1 or 0`);
    },
  };
}

/** An IP address or name, and a port. */
export interface Address {
  readonly hostname: string;
  readonly port: number;
}

/** `127.0.0.1:9080`, `[::1]:9080`, `localhost:0`; port 0 means any free one. */
export function parseAddress(flag: string, text: string): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(text);
  const hostname = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (hostname === undefined || port > 65_535)
    throw new UsageError(
      `--${flag}: must be an address and a port, such as 127.0.0.1:9080 or [::1]:9080, not "${text}"`,
    );
  return { hostname, port };
}

/** `127.0.0.1:80`, `[::1]:80`. */
export const formatAddress = ({ hostname, port }: Address) =>
  hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
