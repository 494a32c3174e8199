// An invitation to a fleet: a token for one machine, and what it makes of an empty data directory; prints nothing.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { SealError, SecretBox } from "../crypto/secret-box.ts";
import { FleetError, type PostgresAddress } from "../fleet/postgres-connection.ts";
import type { PostgresSource } from "../fleet/postgres-source.ts";
import {
  finishRotation,
  KEY_VARIABLE,
  prepareNewKey,
  readSecretKey,
  secretKeyPath,
} from "../store/secret-key.ts";
import { Store } from "../store/store.ts";
import type { CommandContext } from "./command.ts";
import { requireNodeName } from "./fleet-flags.ts";
import { membershipPath, writeMembership } from "./fleet-membership.ts";
import { UsageError } from "./usage-error.ts";

/** What a token says: how to reach the database, and what opens the secret key that waits there under `id`. */
export interface Invited {
  readonly urls: readonly string[];
  /** PEM. */
  readonly root_certificate: string | null;
  readonly id: string;
  /** 32 bytes in base64url. */
  readonly secret: string;
}

type Env = CommandContext["env"];

export interface InvitationOptions {
  readonly source: PostgresSource;
  readonly database: PostgresAddress;
  readonly dataDir: string;
  readonly env: Env;
  readonly minutes: number;
}

const PREFIX = "sluice-join-";

/** The token. The secret key is in the database until it is taken, sealed with a key that only the token has. */
export async function createInvitation(options: InvitationOptions): Promise<string> {
  const { source, database, dataDir, env, minutes } = options;
  const key = readSecretKey({ dataDir, env });
  if (key === null)
    throw new FleetError(
      `there is no secret key in ${dataDir}: run this on a node, with its --data-dir or its ${KEY_VARIABLE}`,
    );
  await source.open();
  const { fleetId, keyId } = await source.identity();
  if (fleetId === "") throw new FleetError("--store: there is no fleet yet; start its first node");
  const own = new SecretBox(key).keyId;
  if (keyId !== own)
    throw new FleetError(
      `the secret key of ${dataDir} (${own}) is not the one of the fleet (${keyId}): run this on a node`,
    );
  const secret = randomBytes(32);
  const id = Bun.randomUUIDv7();
  const sealed = new SecretBox(secret).seal(Buffer.from(key).toString("base64url"));
  await source.keepInvitation(id, sealed, minutes * 60_000);
  const invited: Invited = {
    urls: database.urls,
    root_certificate: database.rootCertificate,
    id,
    secret: secret.toString("base64url"),
  };
  return PREFIX + Buffer.from(JSON.stringify(invited)).toString("base64url");
}

function readToken(text: string): Invited {
  const token = text.trim();
  if (token === "")
    throw new UsageError("SLUICE_JOIN_TOKEN: is empty; sluice fleet invite prints one");
  const broken = new UsageError(
    "SLUICE_JOIN_TOKEN: is not a whole token of sluice fleet invite; copy it again",
  );
  if (!token.startsWith(PREFIX)) throw broken;
  let value: Partial<Invited>;
  try {
    value = JSON.parse(Buffer.from(token.slice(PREFIX.length), "base64url").toString());
  } catch {
    throw broken;
  }
  const { urls, root_certificate = null, id, secret } = value;
  if (!Array.isArray(urls) || typeof id !== "string" || typeof secret !== "string") throw broken;
  return { urls, root_certificate, id, secret };
}

export interface JoiningOptions {
  readonly token: string;
  readonly dataDir: string;
  readonly env: Env;
  /** Null: the host name. */
  readonly nodeName: string | null;
  readonly open: (invited: Invited) => PostgresSource;
}

/** Leaves the secret key and the address of the database in an empty data directory. */
export async function joinByInvitation(options: JoiningOptions): Promise<void> {
  const { dataDir, env, nodeName } = options;
  const invited = readToken(options.token);
  if (nodeName !== null) requireNodeName(nodeName);
  if (env[KEY_VARIABLE] !== undefined)
    throw new FleetError(
      `${KEY_VARIABLE} is set: a node that joins gets the key of its fleet; remove it`,
    );
  const present = [secretKeyPath(dataDir), membershipPath(dataDir)].filter((path) =>
    existsSync(path),
  );
  if (Store.isThere(dataDir) || present.length > 0)
    throw new FleetError(
      `${dataDir} is that of a gateway already: name an empty one in --data-dir`,
    );
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const source = options.open(invited);
  try {
    await source.open();
    const sealed = await source.takeInvitation(invited.id);
    if (sealed === null)
      throw new FleetError(
        "the token was used already, or its time is over: ask for another one with sluice fleet invite",
      );
    prepareNewKey(dataDir, keyIn(sealed, invited.secret));
    writeMembership(dataDir, {
      urls: [...invited.urls],
      root_certificate: invited.root_certificate,
      node_name: nodeName,
    });
    finishRotation(dataDir);
  } finally {
    await source.close();
  }
}

function keyIn(sealed: string, secret: string): Uint8Array {
  try {
    const box = new SecretBox(Buffer.from(secret, "base64url"));
    return new Uint8Array(Buffer.from(box.open(sealed), "base64url"));
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    throw new FleetError("the invitation in the database was changed: ask for another one");
  }
}
