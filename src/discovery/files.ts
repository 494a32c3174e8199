// Follows a directory of configuration files, each of which owns what it names; knows no resource.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import { type Document, isDocument } from "../control/body.ts";
import { withPlainTargets } from "../control/services.ts";
import { readTrusted, requireApart, TrustError, trustedPath } from "../control/trusted-file.ts";
import { DocumentReader, type OpenDocument } from "../import/transfer/document-reader.ts";
import type { ParseJson } from "../import/transfer/source.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import { collectionNames } from "../model/gateway-config.ts";
import { Pace } from "../pace.ts";
import type { SourceView } from "./source-view.ts";
import { ManagedSource, type ManagedSourceOptions } from "./managed-source.ts";
import type { Site } from "./site.ts";

/** Polls, because file notifications miss files that are replaced behind links, as Kubernetes does. */
const INTERVAL_MS = 500;
const MAX_FILES = 5000;
/** Longer work gives the event loop a turn. */
const SLICE = { objects: Number.POSITIVE_INFINITY, ms: 20 } as const;
/** Of all files together, as in an import. */
const MAX_TOTAL_BYTES = 67_108_864;
const NAME = /^[^.].*\.(?:ya?ml|json)$/i;
/** Who may sign in is decided by people. */
const LEFT_OUT: readonly string[] = ["users", "tokens", "settings"];

export interface ConfigFiles {
  readonly directory: string;
  /** Of one file. */
  readonly maxBytes: number;
  /** Directories that it must be apart from: the gateway writes there what others send. */
  readonly written: readonly string[];
  /** Rejects ambiguous JSON. */
  readonly parseJson: ParseJson;
}

export interface FileOptions extends ManagedSourceOptions, ConfigFiles {
  /** The mark of its objects: `files`, and `files@NODE` in a fleet. */
  readonly owner: string;
  /** Entry file of the thread that reads large files. Default: this thread reads them. */
  readonly importerUrl?: URL;
  readonly clock: Clock;
  readonly log: Log;
  /** Default half a second. */
  readonly intervalMs?: number;
}

export class FileSource {
  readonly #options: FileOptions;
  readonly #source: ManagedSource;
  readonly #reader: DocumentReader;
  #mark = "";
  #timer: Timer | null = null;
  #work: Promise<void> = Promise.resolve();
  #isBusy = false;
  #view: Omit<SourceView, "name"> = {
    state: "connecting",
    problem: null,
    looked_at: null,
    found: 0,
    sites: [],
  };

  constructor(options: FileOptions) {
    this.#options = options;
    this.#source = new ManagedSource(options.owner, options);
    this.#reader = new DocumentReader({ ...options, url: options.importerUrl ?? null });
    options.changes.onServed((change) => {
      if (this.#source.concerns(change, this.#view.sites)) this.#mark = "";
    });
  }

  start(): void {
    this.#look();
    this.#timer = setInterval(() => this.#look(), this.#options.intervalMs ?? INTERVAL_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#work;
  }

  view(): SourceView {
    return { name: this.#source.owner, ...this.#view };
  }

  #look(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#work = this.#follow()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#isBusy = false;
      });
  }

  async #follow(): Promise<void> {
    const { directory, written, clock, log } = this.#options;
    requireApart(trustedPath(directory), written);
    const names = readdirSync(directory)
      .filter((name) => NAME.test(name))
      .toSorted();
    if (names.length > MAX_FILES)
      throw new ApiError(400, `${directory} holds more than ${MAX_FILES} files`);
    const mark = names.map((name) => `${name} ${markOf(join(directory, name))}`).join("\n");
    const key = `:${mark}`;
    if (key === this.#mark) return;
    this.#mark = key;
    const read: Site[] = [];
    const left = { bytes: MAX_TOTAL_BYTES };
    const pace = new Pace(SLICE);
    // One after the other: each large file needs a thread.
    for (const name of names) {
      read.push(await this.#read(name, left));
      if (pace.isDue()) await pace.rest();
    }
    const old = new Map(this.#view.sites.map(({ from, problems }) => [from, problems.join("; ")]));
    const sites = await this.#source.apply(read);
    for (const { from, problems } of sites)
      if (problems.length > 0 && old.get(from) !== problems.join("; "))
        log.warn("a configuration file is not served, or not all of it", { file: from, problems });
    const looked_at = new Date(clock.now()).toISOString();
    this.#view = { state: "connected", problem: null, looked_at, found: names.length, sites };
  }

  async #read(name: string, left: { bytes: number }): Promise<Site> {
    const { directory, maxBytes, parseJson } = this.#options;
    const refused = (problem: string): Site => ({ from: name, document: {}, problems: [problem] });
    try {
      const bytes = readTrusted(join(directory, name), { within: directory, maxBytes });
      left.bytes -= bytes.byteLength;
      if (left.bytes < 0) return refused("the files before it have 64 MB");
      const type = /\.json$/i.test(name) ? "json" : "yaml";
      const task = { bytes, form: { type }, passphrase: null } as const;
      const { value, positionOf } = await this.#reader.read(task, parseJson);
      // An empty file is one that is being written.
      return value === null || value === undefined
        ? { from: name, document: {}, problems: [] }
        : { ...(await siteOf(name, value, positionOf)), positionOf };
    } catch (error) {
      return refused(problemOf(error));
    }
  }

  #fail(error: unknown): void {
    this.#mark = "";
    const problem = (error as Error).message;
    if (this.#view.problem !== problem)
      this.#options.log.error("the configuration files cannot be followed; what is served stays", {
        problem,
      });
    this.#view = { ...this.#view, state: "failed", problem };
  }
}

function markOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  // Also changes with owner and mode.
  return found === undefined ? "" : `${found.mtimeMs} ${found.ctimeMs} ${found.size} ${found.ino}`;
}

/** Everyone who may read the configuration sees it, so it quotes nothing of the file, which may be the wrong one. */
function problemOf(error: unknown): string {
  if (error instanceof TrustError) return error.message;
  if (!(error instanceof ApiError)) {
    const { code = "unknown reason" } = error as NodeJS.ErrnoException;
    return `the file cannot be read: ${code}`;
  }
  const [at = ""] = /\bline \d+(?:, column \d+)?/.exec(error.message) ?? [];
  return `the file is not valid YAML or JSON${at === "" ? "" : `: see ${at}`}`;
}

async function siteOf(
  from: string,
  value: unknown,
  positionOf: OpenDocument["positionOf"],
): Promise<Site> {
  const refused = (problem: string): Site => ({ from, document: {}, problems: [problem] });
  if (!isDocument(value))
    return refused("the file must hold an object with lists, such as applications");
  const document: Record<string, readonly Document[]> = {};
  for (const [name, list] of Object.entries(value)) {
    if (name === "format" || name === "program" || name === "$schema") continue;
    if (LEFT_OUT.includes(name))
      return refused(`${name}: is not a list that a file of the directory may hold`);
    if (!(collectionNames as readonly string[]).includes(name))
      return refused(
        `line ${(await positionOf(name))?.line}: this is not a list that a file of the directory may hold, such as applications`,
      );
    if (!Array.isArray(list) || !list.every(isDocument))
      return refused(`${name}: must be a list of objects`);
    document[name] = (list as readonly Document[]).map(({ id: _, ...fields }) => fields);
  }
  const wrong = (document["services"] ?? []).findIndex(
    ({ targets = [] }) => !Array.isArray(targets) || !targets.every(isDocument),
  );
  if (wrong !== -1) return refused(`services[${wrong}].targets: must be a list of objects`);
  return { from, document: withPlainServices(document), problems: [] };
}

type Lists = Readonly<Record<string, readonly Document[]>>;

/** Targets in a service, as in a request, are objects of their own here. */
function withPlainServices(document: Lists): Lists {
  const { services = [], targets = [] } = document;
  const own = services.flatMap((service) => {
    const { targets: inside = [] } = withPlainTargets(service) as { targets?: Document[] };
    return inside.map((target) => ({ ...target, service_id: service["name"] }));
  });
  if (own.length === 0) return document;
  const plain = services.map(({ targets: _, ...service }) => service);
  return { ...document, services: plain, targets: [...targets, ...own] };
}
