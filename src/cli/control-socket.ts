// The local socket in the data directory, on which commands reach the gateway that serves it; knows no operation itself.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Type as t } from "@sinclair/typebox";
import type { Recovery } from "../control/recovery.ts";
import type { Replacement } from "./replacement.ts";
import type { Log } from "../log.ts";
import { decode } from "../model/decode.ts";
import { ApiError } from "../model/error.ts";
import { oneOf } from "../model/fields.ts";
import { roles } from "../model/user.ts";
import { StoreError } from "../store/error.ts";
import { DATABASE } from "../store/store.ts";

/** What commands ask for. */
export type LocalOperations = Pick<Recovery, "resetPassword" | "issueToken" | "resetNetworks">;
export type LocalOperation = keyof LocalOperations;
/** What only a gateway that serves can do. */
export type HandOver = Pick<Replacement, "replace" | "begin" | "release" | "finish" | "fail">;
type Operations = LocalOperations & HandOver;
export type LocalInput<K extends keyof Operations> = Parameters<Operations[K]>[0];
export type LocalAnswer<K extends keyof Operations> = Awaited<ReturnType<Operations[K]>>;

const resetInput = t.Object(
  {
    email: t.String({ maxLength: 254 }),
    password: t.Union([t.String({ maxLength: 4096 }), t.Null()]),
    role: t.Union([oneOf(roles, { description: "Role" }), t.Null()]),
  },
  { additionalProperties: false },
);
const tokenInput = t.Object({ rotate: t.Boolean() }, { additionalProperties: false });
const networksInput = t.Object(
  { allow: t.Array(t.String({ maxLength: 64 }), { maxItems: 100 }) },
  { additionalProperties: false },
);
const replaceInput = t.Object(
  {
    argv: t.Array(t.String(), { minItems: 1, maxItems: 16 }),
    drain_seconds: t.Integer({ minimum: 0, maximum: 86_400 }),
  },
  { additionalProperties: false },
);
const beginInput = t.Object(
  { pid: t.Integer({ minimum: 1 }), version: t.String({ maxLength: 100 }) },
  { additionalProperties: false },
);
const successorInput = t.Object(
  { pid: t.Integer({ minimum: 1 }) },
  { additionalProperties: false },
);
const failInput = t.Object(
  { pid: t.Integer({ minimum: 1 }), reason: t.String({ maxLength: 10_000 }) },
  { additionalProperties: false },
);

const MAX_BODY_BYTES = 65_536;
const TOKEN_HEADER = "x-control-token";
const pathOf = (dataDir: string) => join(dataDir, "control.sock");
/**
 * Holds what a caller must show. A target may be a socket, this one among them: whoever sends something through the gateway
 * must not give orders here, and has not read this file.
 */
const tokenPathOf = (dataDir: string) => join(dataDir, "control.token");

export interface ControlSocket {
  /** Takes the socket away; what is under way comes to its end. */
  stop(): Promise<void>;
}

export interface ControlSocketOptions {
  readonly dataDir: string;
  readonly operations: LocalOperations;
  /** Absent: nothing that is asked of it is known. */
  readonly handOver?: HandOver;
  readonly log: Log;
}

/**
 * Listens for commands of the same user or root. To be called by the holder of the directory's lock, to whom a socket that
 * is there is a leftover. Null when the file system has no sockets: the gateway serves without.
 */
export function serveControlSocket(options: ControlSocketOptions): ControlSocket | null {
  const { dataDir, log } = options;
  const path = pathOf(dataDir);
  const token = randomBytes(32).toString("base64url");
  // Until its mode is set, nobody else may connect.
  const mask = process.umask(0o177);
  try {
    for (const leftover of [path, tokenPathOf(dataDir)]) rmSync(leftover, { force: true });
    writeFileSync(tokenPathOf(dataDir), token, { mode: 0o600, flag: "wx" });
    const server = Bun.serve({
      unix: path,
      development: false,
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch(request, self) {
        // A replacement takes as long as the new process needs to start.
        self.timeout(request, 0);
        return answer(request, token, options);
      },
    });
    chmodSync(path, 0o600);
    return {
      async stop() {
        rmSync(tokenPathOf(dataDir), { force: true });
        await server.stop();
      },
    };
  } catch (error) {
    log.warn(
      "the local socket is missing: reset-password, reset-admin-networks and token need the gateway stopped",
      {
        path,
        error,
      },
    );
    return null;
  } finally {
    process.umask(mask);
  }
}

async function answer(request: Request, token: string, options: ControlSocketOptions) {
  const { operations, handOver, log } = options;
  try {
    const { pathname } = new URL(request.url);
    const shown = Buffer.from(request.headers.get(TOKEN_HEADER) ?? "");
    if (shown.length !== token.length || !timingSafeEqual(shown, Buffer.from(token)))
      throw new ApiError(403, "only commands on this machine may ask for this");
    if (request.method !== "POST") throw new ApiError(405, "only POST is allowed");
    const body: unknown = await request.json().catch(() => null);
    switch (pathname) {
      case "/resetPassword":
        return Response.json(await operations.resetPassword(decode(resetInput, body)));
      case "/issueToken":
        return Response.json(operations.issueToken(decode(tokenInput, body)));
      case "/resetNetworks":
        return Response.json(await operations.resetNetworks(decode(networksInput, body)));
      default:
        if (handOver !== undefined) return Response.json(await hand(handOver, pathname, body));
        throw unknownCommand();
    }
  } catch (error) {
    if (error instanceof ApiError)
      return Response.json({ error: error.message }, { status: error.status });
    log.error("a local command failed", { error });
    return Response.json({ error: "the gateway failed; its log says why" }, { status: 500 });
  }
}

const unknownCommand = () =>
  new ApiError(404, "this gateway does not know the command: it is of another version");

/** What has to do with the process that is to serve after this one. */
async function hand(handOver: HandOver, pathname: string, body: unknown): Promise<object> {
  switch (pathname) {
    case "/replace":
      return await handOver.replace(decode(replaceInput, body));
    case "/begin":
      return await handOver.begin(decode(beginInput, body));
    case "/release":
      return await handOver.release(decode(successorInput, body));
    case "/finish":
      return await handOver.finish(decode(successorInput, body));
    case "/fail":
      return await handOver.fail(decode(failInput, body));
    default:
      throw unknownCommand();
  }
}

/** The gateway was asked, and ended before it answered: whether it did what was asked is unknown. */
export class GatewayGoneError extends StoreError {}

/**
 * What the gateway that serves the data directory answers; null when none listens. Throws an ApiError when it refuses, and a
 * GatewayGoneError when it ends meanwhile.
 */
export async function askGateway<K extends keyof Operations>(
  dataDir: string,
  operation: K,
  input: LocalInput<K>,
): Promise<LocalAnswer<K> | null> {
  const path = pathOf(dataDir);
  if (!isOurSocket(path, dataDir)) return null;
  const token = readToken(dataDir);
  if (token === "") return null;
  const sent = fetch(`http://localhost/${operation}`, {
    unix: path,
    method: "POST",
    headers: { [TOKEN_HEADER]: token },
    body: JSON.stringify(input),
  });
  const response = await sent.catch((error: unknown) => {
    const { code = "" } = error as { readonly code?: string };
    if (["ENOENT", "ECONNREFUSED", "FailedToOpenSocket", "ConnectionRefused"].includes(code))
      return null;
    throw gone(dataDir, error);
  });
  if (response === null) return null;
  const body = (await response.json().catch((error: unknown) => {
    throw gone(dataDir, error);
  })) as { readonly error?: string };
  const status = response.status === 409 ? 409 : 400;
  if (!response.ok) throw new ApiError(status, body.error ?? `status ${response.status}`);
  return body as LocalAnswer<K>;
}

const gone = (dataDir: string, cause: unknown) =>
  new GatewayGoneError(`the gateway that serves ${dataDir} ended before it answered`, { cause });

/** Empty while the gateway starts or stops. */
function readToken(dataDir: string): string {
  try {
    return readFileSync(tokenPathOf(dataDir), "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return "";
    throw new StoreError(`${tokenPathOf(dataDir)}: ${message}`, { cause: error });
  }
}

/** A directory that others can write to may hold a socket of somebody who waits for passwords. */
function isOurSocket(path: string, dataDir: string): boolean {
  const socket = lstatSync(path, { throwIfNoEntry: false });
  if (socket === undefined) return false;
  const database = lstatSync(join(dataDir, DATABASE), { throwIfNoEntry: false });
  if (socket.isSocket() && socket.uid === database?.uid) return true;
  throw new StoreError(`${path} was not made by the gateway that owns the database beside it`);
}
