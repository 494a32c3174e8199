// The commands `trust` and `untrust`: make this machine trust the root of the local CA, or no longer; know no socket.
import { X509Certificate } from "node:crypto";
import type { Command, CommandContext } from "./command.ts";
import { type Flag, type Flags, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import {
  CommandError,
  managementClient,
  managementFlags,
  reportingErrors,
} from "./management-client.ts";
import { dataDirFlag } from "./serve.ts";
import {
  NAME_PREFIX,
  type StoreResult,
  trustInBrowsers,
  trustInSystem,
  type TrustedRoot,
  untrustInBrowsers,
  untrustInSystem,
} from "./trust-stores.ts";
import { UsageError } from "./usage-error.ts";

const source: readonly Flag[] = [
  dataDirFlag,
  ...managementFlags.map(({ fallback: _, ...flag }) =>
    flag.name === "url"
      ? {
          ...flag,
          description:
            "URL of the management API to read the root from; default: the data directory",
        }
      : flag,
  ),
  {
    name: "fingerprint",
    value: "SHA256",
    description:
      "Fingerprint that the root must have, as the web UI shows it; required for http:// to another machine",
  },
];

const trustFlags: readonly Flag[] = [
  ...source,
  {
    name: "print",
    value: null,
    description: "Write the root as PEM to standard output, and change nothing",
  },
];

const untrustFlags: readonly Flag[] = [
  ...source,
  { name: "all", value: null, description: "Every root of a local CA of Sluice; needs no gateway" },
];

export function createTrustCommand(openOffline: OpenOffline): Command {
  return {
    name: "trust",
    summary: "Make this machine and its browsers trust the local CA",
    details:
      "Adds the root to the system's store (as root) and to the databases of Chromium and Firefox of the user (with certutil\n" +
      "of libnss3-tools), and says what it did and what it could not. Creates the root when there is none.",
    flags: trustFlags,
    run: (argv, context) =>
      reportingErrors(async () => {
        const given = parseFlags(trustFlags, argv, context.env);
        const root = await readRoot(given, context, openOffline);
        if (root === null) return 1;
        if (given.has("print")) {
          context.print(root.pem);
          return 0;
        }
        if (process.platform !== "linux") return explain(root, context);
        context.print(`${root.name}, SHA-256 ${fingerprintOf(root)}\n`);
        return report([trustInSystem(root, context), ...trustInBrowsers(root, context)], context);
      }),
  };
}

export function createUntrustCommand(openOffline: OpenOffline): Command {
  return {
    name: "untrust",
    summary: "Remove the local CA from the trusted ones of this machine and its browsers",
    flags: untrustFlags,
    run: (argv, context) =>
      reportingErrors(async () => {
        const given = parseFlags(untrustFlags, argv, context.env);
        const isAll = given.has("all");
        const root = isAll ? null : await readRoot(given, context, openOffline);
        if (!isAll && root === null) return 1;
        if (process.platform !== "linux")
          throw new CommandError("remove the root in the certificate manager of this system");
        const name = root?.name ?? null;
        return report(
          [untrustInSystem(name, context), ...untrustInBrowsers(name, context)],
          context,
        );
      }),
  };
}

function report(results: readonly StoreResult[], { print }: CommandContext): number {
  print(results.map(({ state, text }) => `${state}: ${text}\n`).join(""));
  return results.some(({ state }) => state === "failed") ? 1 : 0;
}

/** What to run on systems without a store that this command knows. */
function explain({ name, pem }: TrustedRoot, { print }: CommandContext): number {
  const file = "sluice-local-ca.crt";
  const command =
    process.platform === "darwin"
      ? `sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${file}`
      : `certutil -addstore -f ROOT ${file}`;
  print(`${pem}# ${name}: save this as ${file} and run:\n# ${command}\n`);
  return 0;
}

/** Null: the error has been printed. */
async function readRoot(
  given: Flags,
  { env }: CommandContext,
  openOffline: OpenOffline,
): Promise<TrustedRoot | null> {
  const pem = await readPem(given, env, openOffline);
  if (pem === null) return null;
  const root = rootIn(pem);
  const wanted = (given.get("fingerprint") ?? "").replaceAll(":", "").toLowerCase();
  if (wanted !== "" && wanted !== fingerprintOf(root))
    throw new CommandError(`the root has the fingerprint ${fingerprintOf(root)}, not ${wanted}`);
  return root;
}

async function readPem(
  given: Flags,
  env: CommandContext["env"],
  openOffline: OpenOffline,
): Promise<string | null> {
  const url = given.get("url");
  if (url !== undefined) {
    requireAuthentic(url, given);
    return await managementClient(given, env)({ method: "GET", path: "/local-ca/root.pem" });
  }
  let pem: string | null = null;
  await runLocally(openOffline, given, {
    call: () => Promise.resolve({ operation: "readLocalCa", input: {} }),
    show: ({ certificate }) => {
      pem = certificate;
    },
  });
  return pem;
}

/** An attacker on the way could send a root of its own, which would then be trusted for every site. */
function requireAuthentic(text: string, given: Flags): void {
  const url = URL.parse(text);
  const isLocal = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url?.hostname ?? "");
  if (url?.protocol !== "http:" || isLocal || given.get("fingerprint") !== undefined) return;
  throw new UsageError(
    "--fingerprint: is required for http:// to another machine, where the root could be exchanged on its way; the page Local CA of the web UI shows it",
  );
}

function rootIn(pem: string): TrustedRoot {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    throw new CommandError("the response holds no certificate");
  }
  const name = certificate.subject.replace(/^CN=/, "");
  const isRoot =
    name.startsWith(NAME_PREFIX) &&
    /^[0-9a-f]{8}$/.test(name.slice(NAME_PREFIX.length)) &&
    certificate.ca &&
    certificate.verify(certificate.publicKey);
  if (!isRoot) throw new CommandError("the certificate is no root of a local CA of Sluice");
  return { name, pem: certificate.toString() };
}

const fingerprintOf = ({ pem }: TrustedRoot) =>
  new X509Certificate(pem).fingerprint256.replaceAll(":", "").toLowerCase();
