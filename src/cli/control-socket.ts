// The control socket in the data directory, over which commands reach the running gateway; knows no operation itself.
import { timingSafeEqual } from "node:crypto";
import { chmodSync, lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Static, Type as t } from "@sinclair/typebox";
import type { Recovery } from "../auth/recovery.ts";
import { fileProblem } from "../model/file-problem.ts";
import type { Replacement } from "./replacement.ts";
import type { Log } from "../log.ts";
import { createRandomText } from "../crypto/token.ts";
import { decode } from "../model/decode.ts";
import { ApiError } from "../model/error.ts";
import { oneOf } from "../model/fields.ts";
import type { ListenAddress } from "../net/destinations.ts";
import { roles } from "../model/user.ts";
import { StoreError } from "../store/error.ts";
import { DATABASE } from "../store/open-database.ts";

/** Operations of commands. */
export type LocalOperations = Pick<
  Recovery,
  "resetPassword" | "issueToken" | "resetNetworks" | "rotateKey" | "readLocalCa" | "changeListener"
>;
export type LocalOperation = keyof LocalOperations;
/** Operations of a running gateway only. */
export type HandOver = Pick<Replacement, "replace" | "begin" | "release" | "finish" | "fail">;
/** Of a node of a fleet: a password is among it. */
export interface DatabaseMove {
  useDatabase(database: Static<typeof databaseInput>): Promise<{
    /** Whether the next start uses it too. */
    readonly is_kept: boolean;
  }>;
}
type Operations = LocalOperations & HandOver & DatabaseMove;
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
const listenerInput = t.Object(
  {
    name: t.Union([t.String({ maxLength: 1000 }), t.Null()]),
    change: t.Union([
      t.Partial(t.Object({ address: t.String(), port: t.Integer(), enabled: t.Boolean() }), {
        additionalProperties: false,
      }),
      t.Null(),
    ]),
  },
  { additionalProperties: false },
);
const rotateInput = t.Object(
  { new_key: t.Union([t.String({ maxLength: 200 }), t.Null()]), force: t.Boolean() },
  { additionalProperties: false },
);
const databaseInput = t.Object(
  {
    urls: t.Array(t.String({ maxLength: 4096 }), { minItems: 1, maxItems: 16 }),
    root_certificate: t.Union([t.String({ maxLength: 32_768 }), t.Null()]),
  },
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

/** As a target would name it. */
export const controlAddress = (dataDir: string): ListenAddress => ({
  address: `unix:${resolve(pathOf(dataDir))}`,
  port: -1,
});

/**
 * The token of control requests. A target may be a unix socket, this one among them: a client of the gateway must not run
 * operations here, and cannot read this file.
 */
const tokenPathOf = (dataDir: string) => join(dataDir, "control.token");

export interface ControlSocket {
  /** Removes the socket; operations in progress finish. */
  stop(): Promise<void>;
}

export interface ControlSocketOptions {
  readonly dataDir: string;
  readonly operations: LocalOperations;
  /** Absent: its operations are unknown. */
  readonly handOver?: HandOver;
  /** Null: this gateway is part of no fleet. */
  readonly database?: DatabaseMove | null;
  readonly log: Log;
}

/**
 * Listens for commands of the same user or root. The caller must hold the directory's lock, so that an existing socket is
 * a leftover. Null when the file system has no sockets: the gateway serves without.
 */
export function serveControlSocket(options: ControlSocketOptions): ControlSocket | null {
  const { dataDir, log } = options;
  const path = pathOf(dataDir);
  const token = createRandomText();
  // Until its mode is set, no other user may connect.
  const mask = process.umask(0o177);
  try {
    for (const leftover of [path, tokenPathOf(dataDir)]) rmSync(leftover, { force: true });
    writeFileSync(tokenPathOf(dataDir), token, { mode: 0o600, flag: "wx" });
    const server = Bun.serve({
      unix: path,
      development: false,
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch(request, self) {
        // An upgrade lasts until the new process has started.
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
      "the control socket is missing: reset-password, reset-admin-networks, listeners, rotate-key and token require a stopped gateway",
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
  const { operations, handOver, database = null, log } = options;
  try {
    const { pathname } = new URL(request.url);
    const shown = Buffer.from(request.headers.get(TOKEN_HEADER) ?? "");
    if (shown.length !== token.length || !timingSafeEqual(shown, Buffer.from(token)))
      throw new ApiError(403, "only commands on this machine may use the control socket");
    if (request.method !== "POST") throw new ApiError(405, "only POST is allowed");
    const body: unknown = await request.json().catch(() => null);
    switch (pathname) {
      case "/resetPassword":
        return Response.json(await operations.resetPassword(decode(resetInput, body)));
      case "/issueToken":
        return Response.json(await operations.issueToken(decode(tokenInput, body)));
      case "/resetNetworks":
        return Response.json(await operations.resetNetworks(decode(networksInput, body)));
      case "/changeListener":
        return Response.json(await operations.changeListener(decode(listenerInput, body)));
      case "/readLocalCa":
        return Response.json(await operations.readLocalCa());
      case "/rotateKey":
        return Response.json(await operations.rotateKey(decode(rotateInput, body)));
      case "/useDatabase":
        if (database === null) throw new ApiError(409, "this gateway is part of no fleet");
        return Response.json(await database.useDatabase(decode(databaseInput, body)));
      default:
        if (handOver !== undefined) return Response.json(await hand(handOver, pathname, body));
        throw unknownCommand();
    }
  } catch (error) {
    if (error instanceof ApiError)
      return Response.json({ error: error.message }, { status: error.status });
    log.error("a local command failed", { error });
    return Response.json({ error: "internal error; see the log of the gateway" }, { status: 500 });
  }
}

const unknownCommand = () =>
  new ApiError(404, "this gateway has another version and does not know the command");

/** Operations of an upgrade. */
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

/** The gateway ended before it responded: the result of the operation is unknown. */
export class GatewayGoneError extends StoreError {}

/**
 * The response of the gateway that serves the data directory; null when none listens. Throws an ApiError when it refuses,
 * and a GatewayGoneError when it ends meanwhile.
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
  new GatewayGoneError(`the gateway that serves ${dataDir} ended before it responded`, { cause });

/** Empty while the gateway starts or stops. */
function readToken(dataDir: string): string {
  try {
    return readFileSync(tokenPathOf(dataDir), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw new StoreError(`${tokenPathOf(dataDir)}: ${fileProblem(error)}`, { cause: error });
  }
}

/** In a directory that others can write to, another user may have placed a socket to steal passwords. */
function isOurSocket(path: string, dataDir: string): boolean {
  const socket = lstatSync(path, { throwIfNoEntry: false });
  if (socket === undefined) return false;
  const database = lstatSync(join(dataDir, DATABASE), { throwIfNoEntry: false });
  if (socket.isSocket() && socket.uid === database?.uid) return true;
  throw new StoreError(`${path} was not created by the gateway that owns the database beside it`);
}
