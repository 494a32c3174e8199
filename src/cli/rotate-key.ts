// The command `rotate-key`: encrypts all stored secrets with a new key, while a gateway runs or not; knows no secret.
import { resolve } from "node:path";
import type { KeyRotated } from "../control/key-rotation.ts";
import { secretKeyPath } from "../store/secret-key.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  { name: "force", value: null, description: "Rotate while nodes of the fleet are missing" },
];

export function createRotateKey(openOffline: OpenOffline): Command {
  return {
    name: "rotate-key",
    summary: "Encrypt all stored secrets with a new key, without a restart",
    details:
      "The new key replaces secret.key in the data directory; of a fleet, in those of all nodes. A key from the variable\n" +
      "SLUICE_NEW_SECRET_KEY is used if there is one. It is required where the present key comes from SLUICE_SECRET_KEY: set it\n" +
      "for the gateway too, then rotate, then move it to SLUICE_SECRET_KEY. The command may be interrupted at any moment: the\n" +
      "next start uses the key that the secrets are encrypted with. Run it on the machine of the data directory, as the user\n" +
      "who owns the directory.",
    flags,
    run(argv, { env, print }) {
      const given = parseFlags(flags, argv, env);
      const new_key = env["SLUICE_NEW_SECRET_KEY"] ?? null;
      const path = secretKeyPath(resolve(given.get("data-dir") ?? "./data"));
      return runLocally(openOffline, given, {
        call: () =>
          Promise.resolve({
            operation: "rotateKey",
            input: { new_key, force: given.has("force") },
          }),
        show: (rotated) => {
          print(described(rotated, path));
          if (rotated.warning !== null) process.stderr.write(`sluice: ${rotated.warning}\n`);
        },
      });
    },
  };
}

function described({ key_id, former_key_id, source, nodes }: KeyRotated, path: string): string {
  const where =
    source === "file"
      ? `It is in ${path}: destroy copies of the old one.`
      : "Move it from SLUICE_NEW_SECRET_KEY to SLUICE_SECRET_KEY before you remove the old one.";
  const lines = [
    `All secrets are encrypted with the key ${key_id} now, not with ${former_key_id} any more.`,
    where,
  ];
  if (nodes !== null) {
    const missing = nodes.missing.map(({ name, state }) => `${name} (${state})`).join(", ");
    const rest = missing === "" ? "" : `; missing: ${missing}`;
    lines.push(`${nodes.live} of ${nodes.nodes} nodes of the fleet have it${rest}.`);
  }
  return `${lines.join("\n")}\n`;
}
