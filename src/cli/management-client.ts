// The client of the management API for commands; knows addresses and tokens, no endpoint.
import { readFileSync } from "node:fs";
import { fileProblem } from "../model/file-problem.ts";
import type { Flag, Flags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

export const managementFlags: readonly Flag[] = [
  {
    name: "url",
    value: "URL",
    description: "URL of the management API; the token comes from SLUICE_TOKEN",
    fallback: "http://127.0.0.1:9080",
  },
  {
    name: "ca",
    value: "FILE",
    description: "CA certificates (PEM) to trust for the management API, beside the system's",
  },
];

export const forceFlag: Flag = {
  name: "force",
  value: null,
  description: "Make the change even if the new admin_allowed_cidrs lock out this client's address",
};

/** An error that a command prints before it exits with code 1. */
export class CommandError extends Error {}

export interface ManagementCall {
  readonly method: "GET" | "POST";
  /** Below /api/v1, with its query: `/export?format=yaml`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whether to print warnings about the change to standard error. Default: no. */
  readonly warns?: boolean;
}

/** The text of a 200; throws a CommandError with the gateway's error otherwise. */
export type CallManagement = (call: ManagementCall) => Promise<string>;

/** The token is in the environment and not on the command line, which every user of the machine can read. */
export function managementClient(
  given: Flags,
  env: Readonly<Record<string, string | undefined>>,
): CallManagement {
  const base = baseOf(given.get("url") ?? "http://127.0.0.1:9080");
  const ca = given.get("ca");
  const tls = ca === undefined ? {} : { tls: { ca: readText(ca) } };
  const token = env["SLUICE_TOKEN"] ?? "";
  return async ({ method, path, headers, body, warns = false }) => {
    const response = await fetch(`${base}/api/v1${path}`, {
      ...tls,
      method,
      redirect: "error",
      headers: { ...headers, ...(token === "" ? {} : { authorization: `Bearer ${token}` }) },
      ...(body === undefined ? {} : { body }),
    }).catch((error: unknown) => {
      throw new CommandError(`${base} does not respond: ${connectionProblem(error)}`);
    });
    const text = await response.text();
    const warning = response.headers.get("x-warning");
    if (warns && warning !== null) process.stderr.write(`sluice: warning: ${warning}\n`);
    if (response.status === 200) return text;
    const problem = errorIn(text) ?? `${base} returned ${response.status}`;
    throw new CommandError(`${problem}${hintFor(response.status, problem)}`);
  };
}

/** What to do, in the place of the advice of the program's own HTTP client. */
function connectionProblem(error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (code === "ECONNREFUSED")
    return "nothing listens there; start the gateway, or name its address in --url";
  if (code === "ENOTFOUND") return "its host name has no address; check --url";
  return message.replace(/^[A-Z]+: /, "");
}

function hintFor(status: number, problem: string): string {
  if (status === 401) return "; set SLUICE_TOKEN to a valid token";
  return problem.includes("?force=1") ? "; use --force of this command" : "";
}

function baseOf(text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.search === "")
    return url.href.replace(/\/+$/, "");
  throw new UsageError(`--url: must be an http:// or https:// address, not "${text}"`);
}

function errorIn(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    return typeof error === "string" ? error : null;
  } catch {
    return null;
  }
}

/** Throws a CommandError in words. `-` is standard input. */
export function readText(path: string): string {
  try {
    return readFileSync(path === "-" ? "/dev/stdin" : path, "utf8");
  } catch (error) {
    const name = path === "-" ? "standard input" : path;
    throw new CommandError(`${name}: ${fileProblem(error)}`, { cause: error });
  }
}

/** Runs a command and prints its error to standard error. */
export async function reportingErrors(run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    process.stderr.write(`sluice: ${error.message}\n`);
    return 1;
  }
}
