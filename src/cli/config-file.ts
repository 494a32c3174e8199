// A gateway whose configuration is a file: applies it at the start and whenever it changes; knows no object.
import { statSync } from "node:fs";
import type { ControlPlane } from "../control-plane.ts";
import { local } from "../control/principal.ts";
import { readRegular, TrustError } from "../control/trusted-file.ts";
import type { SourceDocument } from "../import/transfer/source.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import { parseJson } from "../api/json-body.ts";
import { fileProblem } from "../model/file-problem.ts";
import { parseDocument, typeOf } from "./document-file.ts";
import { CommandError } from "./management-client.ts";

export interface ConfigFileOptions {
  readonly path: string;
  readonly control: Pick<ControlPlane, "changes" | "transfer">;
  readonly log: Log;
  /** Passphrase of an encrypted file; empty: none. */
  readonly passphrase: string;
  /** Default half a second. */
  readonly intervalMs?: number;
}

/** Polls, because file notifications miss files that are replaced behind links, as Kubernetes does. */
const INTERVAL_MS = 500;
/** As in an import. */
const MAX_BYTES = 67_108_864;

/** Throws a CommandError in words when there is no document in the file. */
export function readConfigFile(path: string): Promise<SourceDocument> {
  return parseDocument(path, readFile(path));
}

/** Whether the file has listeners, so that the first start creates none. */
export const declaresListeners = ({ value }: SourceDocument): boolean =>
  typeof value === "object" && value !== null && "listeners" in value;

/** `settings.admin_allowed_cidrs` of the file; null: the file has no settings, or is encrypted. */
export function declaredNetworks({ value }: SourceDocument): readonly string[] | null {
  const { settings } = (value ?? {}) as { readonly settings?: unknown };
  if (typeof settings !== "object" || settings === null) return null;
  const { admin_allowed_cidrs: networks } = settings as { readonly admin_allowed_cidrs?: unknown };
  return Array.isArray(networks) ? networks.map(String) : [];
}

/**
 * Makes the configuration read-only for the API and applies the file; throws an ApiError or CommandError with the reason
 * when it cannot. From then on it applies each valid version of the file and logs an invalid one.
 */
export async function followConfigFile(options: ConfigFileOptions): Promise<{ stop(): void }> {
  const follower = new Follower(options);
  options.control.changes.makeReadOnly();
  await follower.start();
  const timer = setInterval(() => void follower.look(), options.intervalMs ?? INTERVAL_MS);
  return { stop: () => clearInterval(timer) };
}

class Follower {
  readonly #options: ConfigFileOptions;
  /** Of the last version that was read. */
  #text = "";
  #mark = "";
  #isBusy = false;

  constructor(options: ConfigFileOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#mark = this.#markOf();
    this.#text = readFile(this.#options.path);
    await this.#apply();
  }

  /** Never rejects. */
  async look(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const { path, log } = this.#options;
    try {
      const mark = this.#markOf();
      if (mark === this.#mark) return;
      const text = readFile(path);
      this.#mark = mark;
      if (text === this.#text) return;
      this.#text = text;
      await this.#apply();
    } catch (error) {
      const isExplained = error instanceof ApiError || error instanceof CommandError;
      const reason = isExplained ? error.message : error;
      log.error("the configuration file was not applied", { path, error: reason });
    } finally {
      this.#isBusy = false;
    }
  }

  async #apply(): Promise<void> {
    const { path, control, log, passphrase } = this.#options;
    const bytes = new TextEncoder().encode(this.#text);
    const form = { type: typeOf(path, this.#text) };
    const task = { bytes, form, passphrase: passphrase === "" ? null : passphrase };
    const source = await control.transfer.read(task, parseJson);
    const options = { by: local, mode: "replace", dryRun: false } as const;
    const { changes, revision } = await control.transfer.import(source, options);
    log.info("the configuration file was applied", { path, changes: changes.length, revision });
  }

  /** Differs when the file does. A file that is being replaced is read next time. */
  #markOf(): string {
    const found = statSync(this.#options.path, { throwIfNoEntry: false });
    return found === undefined ? this.#mark : `${found.mtimeMs} ${found.size} ${found.ino}`;
  }
}

function readFile(path: string): string {
  try {
    return readRegular(path, MAX_BYTES).toString("utf8");
  } catch (error) {
    if (error instanceof TrustError) throw new CommandError(error.message, { cause: error });
    throw new CommandError(`${path}: ${fileProblem(error)}`, { cause: error });
  }
}
