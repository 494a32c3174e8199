// The command `rotate-key`: encrypts all stored secrets with a new key while no gateway runs; knows no secret.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { rotateKey } from "../control/key-rotation.ts";
import { openSecretBox } from "../control/sealing.ts";
import { createLog } from "../log.ts";
import { DirectoryInUseError, StoreError } from "../store/error.ts";
import { secretKeyPath } from "../store/secret-key.ts";
import { DATABASE, Store } from "../store/store.ts";
import type { Command, CommandContext } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [dataDirFlag];

export const rotateKeyCommand: Command = {
  name: "rotate-key",
  summary: "Encrypt all stored secrets with a new key; the gateway must be stopped",
  details:
    "The new key replaces secret.key in the data directory. If the key comes from SLUICE_SECRET_KEY, the new one comes\n" +
    "from SLUICE_NEW_SECRET_KEY: start the gateway with it in SLUICE_SECRET_KEY from then on. The command may be\n" +
    "interrupted at any moment: the next start uses the key that the secrets are encrypted with.",
  flags,
  run(argv, context) {
    const dataDir = resolve(parseFlags(flags, argv, context.env).get("data-dir") ?? "./data");
    try {
      rotate(dataDir, context);
      return Promise.resolve(0);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      const hint = error instanceof DirectoryInUseError ? "; stop the gateway first" : "";
      process.stderr.write(`sluice: ${error.message}${hint}\n`);
      return Promise.resolve(1);
    }
  },
};

function rotate(dataDir: string, { env, print }: CommandContext): void {
  // Opening would create a new one.
  if (!existsSync(join(dataDir, DATABASE)))
    throw new StoreError(`there is no database at ${join(dataDir, DATABASE)}`);
  const log = createLog({
    level: "warn",
    format: "text",
    sink: (line) => void process.stderr.write(line),
  });
  const store = Store.open({ dataDir, log });
  try {
    if (store.fleetId() !== null)
      throw new StoreError(
        "the nodes of a fleet share one key, which cannot be replaced while there is more than one node: run `sluice fleet leave` on all, drop the schema sluice of their database, rotate the key of the first, found the fleet anew with it, and let the others join with empty data directories and the new key",
      );
    const box = openSecretBox({ dataDir, env, keyIds: store.sealedKeyIds() });
    const next = rotateKey({ dataDir, env, store, box });
    store.audit.append([auditOf(box.keyId, next.keyId)]);
    print(
      `All secrets are encrypted with the key ${next.keyId} now, not with ${box.keyId} any more.\n`,
    );
    if (existsSync(secretKeyPath(dataDir)) && env["SLUICE_SECRET_KEY"] === undefined)
      print(`It is in ${secretKeyPath(dataDir)}: destroy copies of the old one.\n`);
    else print("Start the gateway with the new key in SLUICE_SECRET_KEY from now on.\n");
  } finally {
    store.close();
  }
}

const auditOf = (from: string, to: string) => ({
  at: new Date().toISOString(),
  actor: "local",
  method: "local",
  address: "",
  action: "rotate",
  kind: "secret_key",
  object_id: null,
  object_name: null,
  result: "ok",
  revision: null,
  detail: { from, to },
});
