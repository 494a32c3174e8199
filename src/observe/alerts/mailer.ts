// Loads the package that speaks SMTP, on first use: most gateways send no mail; knows no message.
import { createRequire } from "node:module";
import type nodemailer from "nodemailer";

type Mailer = typeof nodemailer;

/** Not a literal in `import`, or the bundler would add the unpacked files to the executable as well. */
const UNPACKED = "nodemailer";

let loaded: Promise<Mailer> | null = null;

/** Compressed in the executable, as files of the package in a checkout without a build. */
export const loadMailer = (): Promise<Mailer> => (loaded ??= load());

async function load(): Promise<Mailer> {
  const packed = await findPacked();
  if (packed === null) return ((await import(UNPACKED)) as { readonly default: Mailer }).default;
  const source = new TextDecoder().decode(Bun.zstdDecompressSync(packed));
  const module = { exports: {} as { readonly default: Mailer } };
  // The bundle is an expression: a function that sets the exports, and asks for modules of the runtime only.
  const run = new Function(`return (${source})`)() as (...given: readonly unknown[]) => void;
  run(module.exports, createRequire(import.meta.url), module, "nodemailer.js", "/");
  return module.exports.default;
}

async function findPacked(): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    return (await import("../../../dist/packed/nodemailer.js")).packed;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code === "ERR_MODULE_NOT_FOUND") return null;
    throw error;
  }
}
