// Reads the files of a Docker Compose project as one: overrides, included and extended files, variables; knows no proxy.
import { type Document, isDocument } from "../../control/body.ts";
import { ApiError, invalid } from "../../model/error.ts";
import type { ConversionContext } from "../convert.ts";
import type { Report } from "../report.ts";
import { bytesIn, composeFiles } from "../set-up/set-up.ts";
import { folderOf, joined, type SourceTree, textIn } from "../set-up/tree.ts";
import { inFile, readText } from "../source-text.ts";
import { readVariables, substituted, type Variables } from "./variables.ts";

/** A service with all that files add to it. */
export interface ProjectService {
  readonly name: string;
  readonly definition: Document;
  readonly project: Project;
  /** Files that it names and that are not there: they may hold its protection. */
  readonly missing: readonly string[];
}

export interface Project {
  /** Folder that relative paths begin at. */
  readonly folder: string;
  readonly variables: Variables;
  readonly tree: SourceTree;
  /** `configs` of the files. */
  readonly configs: Document;
}

const MAX_DEPTH = 16;
const MAX_FILES = 1000;

/** The projects of a folder, each with its own files. Throws a 400 that names the invalid file. */
export async function readProjects(
  tree: SourceTree,
  context: Pick<ConversionContext, "parseJson" | "mainFile"> & { readonly report: Report },
): Promise<readonly ProjectService[]> {
  const main = context.mainFile ?? null;
  const found = main === null ? composeFiles(tree) : [main];
  const reader = new ProjectReader(tree, context);
  // Compose prefers the first of these names in a folder.
  const byFolder = Map.groupBy(found, folderOf);
  const folders = [...byFolder.keys()].toSorted((a, b) => a.length - b.length);
  const services: ProjectService[] = [];
  for (const folder of folders) {
    const own = byFolder.get(folder) ?? [];
    const first = NAMES.map((name) => (folder === "" ? name : `${folder}/${name}`)).find((path) =>
      own.includes(path),
    );
    const file = first ?? own[0];
    if (file === undefined || reader.hasRead(file)) continue;
    services.push(...(await reader.readProject(file)));
  }
  if (services.length === 0 && !reader.hasServices)
    throw new ApiError(400, "services: is required in a file of Docker Compose");
  return services;
}

const NAMES = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

class ProjectReader {
  readonly #tree: SourceTree;
  readonly #context: Pick<ConversionContext, "parseJson"> & { readonly report: Report };
  readonly #read = new Set<string>();
  hasServices = false;

  constructor(
    tree: SourceTree,
    context: Pick<ConversionContext, "parseJson"> & { readonly report: Report },
  ) {
    this.#tree = tree;
    this.#context = context;
  }

  hasRead(path: string): boolean {
    return this.#read.has(path);
  }

  /** A file, the override beside it, and what they include. */
  async readProject(
    file: string,
    outer: { readonly variables: Variables; readonly depth: number; readonly folder?: string } = {
      variables: new Map(),
      depth: 0,
    },
  ): Promise<readonly ProjectService[]> {
    const folder = outer.folder ?? folderOf(file);
    const own = textIn(this.#tree, joined(folder, ".env") ?? "");
    const variables = new Map([...readVariables(own ?? ""), ...outer.variables]);
    const listed = outer.depth === 0 ? this.#listedFiles(folder, variables) : null;
    const override = file.replace(/\.(ya?ml)$/, "");
    const overrides = ["yml", "yaml"].map((ending) => `${override}.override.${ending}`);
    const files = listed ?? [file, ...overrides.filter((path) => this.#isThere(path))];
    const merged: { services: Document; configs: Document; include: unknown[] } = {
      services: {},
      configs: {},
      include: [],
    };
    for (const path of files) {
      const document = await this.#document(path);
      const services = isDocument(document["services"]) ? document["services"] : {};
      this.hasServices ||= isDocument(document["services"]);
      merged.services = mergedServices(merged.services, services);
      merged.configs = { ...merged.configs, ...(document["configs"] as Document | undefined) };
      const include = document["include"];
      if (Array.isArray(include)) merged.include.push(...(include as unknown[]));
    }
    const project: Project = { folder, variables, tree: this.#tree, configs: merged.configs };
    const included = await this.#included(merged.include, project, outer.depth);
    const all: ProjectService[] = [];
    for (const [name, service] of Object.entries(merged.services)) {
      if (!isDocument(service)) throw invalid(`services.${name}`, "must be an object");
      const missing: string[] = [];
      const whole = await this.#extended(service, {
        project,
        siblings: merged.services,
        missing,
        depth: 0,
      });
      all.push({ name, definition: this.#withEnvFiles(whole, project, missing), project, missing });
    }
    return [...included, ...all];
  }

  #isThere(path: string): boolean {
    return this.#tree.read(path) !== null;
  }

  /** Of COMPOSE_FILE; null: the usual names. */
  #listedFiles(folder: string, variables: Variables): readonly string[] | null {
    const names = (variables.get("COMPOSE_FILE") ?? "").split(/[:;]/).filter((name) => name !== "");
    const paths = names.map((name) => joined(folder, name));
    const lost = names.filter((_, at) => !this.#isThere(paths[at] ?? ""));
    for (const name of lost)
      this.#context.report.omitted(`COMPOSE_FILE ${name}`, "it is not in the files");
    return names.length === 0 || lost.length > 0 ? null : paths.filter((path) => path !== null);
  }

  async #document(path: string): Promise<Document> {
    if (this.#read.size >= MAX_FILES)
      throw new ApiError(400, `the configuration has more than ${MAX_FILES} files`);
    this.#read.add(path);
    const { parseJson } = this.#context;
    const { value } = await inFile(path, () => readText(bytesIn(this.#tree, path), parseJson));
    if (value === null) return {};
    if (!isDocument(value)) throw new ApiError(400, `${path}: must be an object`);
    return value;
  }

  async #included(
    include: readonly unknown[],
    project: Project,
    depth: number,
  ): Promise<readonly ProjectService[]> {
    const { report } = this.#context;
    const found: ProjectService[] = [];
    for (const one of include) {
      const given = isDocument(one) ? one : { path: one };
      const paths = [given["path"]].flat().map(String);
      const inner = given["project_directory"];
      for (const name of paths) {
        const { text } = substituted(name, project.variables);
        const path = text === null ? null : joined(project.folder, text);
        if (path === null || !this.#isThere(path) || depth >= MAX_DEPTH) {
          report.omitted(
            `include ${name}`,
            "the file is not in the files: its services are not imported",
          );
          continue;
        }
        if (this.#read.has(path)) continue;
        const folder = typeof inner === "string" ? (joined(project.folder, inner) ?? "") : null;
        const variables = new Map(project.variables);
        for (const file of [given["env_file"] ?? []].flat()) {
          const at = joined(project.folder, String(file));
          const more = at === null ? null : textIn(this.#tree, at);
          for (const [key, value] of readVariables(more ?? "")) variables.set(key, value);
        }
        const own = { variables, depth: depth + 1, ...(folder === null ? {} : { folder }) };
        found.push(...(await this.readProject(path, own)));
      }
    }
    return found;
  }

  /** The service with those that it extends below it. */
  async #extended(service: Document, at: Extending): Promise<Document> {
    const { extends: given, ...own } = service;
    if (given === undefined || given === null) return own;
    const { file = null, service: name } = isDocument(given) ? given : { service: given };
    const { text } = substituted(String(file ?? ""), at.project.variables);
    const path = file === null || text === null ? null : joined(at.project.folder, text);
    const isMissing = file !== null && (path === null || !this.#isThere(path));
    const siblings = isMissing
      ? {}
      : path === null
        ? at.siblings
        : ((await this.#document(path))["services"] as Document | undefined);
    const base = siblings?.[String(name)];
    if (!isDocument(base) || at.depth >= MAX_DEPTH) {
      at.missing.push(`extends ${file === null ? "" : `${text ?? String(file)} `}${String(name)}`);
      return own;
    }
    const next = { ...at, siblings: siblings ?? {}, depth: at.depth + 1 };
    return mergedService(await this.#extended(base, next), own);
  }

  #withEnvFiles(service: Document, project: Project, missing: string[]): Document {
    const found: string[] = [];
    for (const one of [service["env_file"] ?? []].flat()) {
      const given = isDocument(one) ? one : { path: one };
      const name = String(given["path"]);
      const { text } = substituted(name, project.variables);
      const path = text === null ? null : joined(project.folder, text);
      const content = path === null ? null : textIn(project.tree, path);
      if (content !== null) {
        // Not substituted again.
        for (const [key, value] of readVariables(content))
          found.push(`${key}=${value.replaceAll("$", "$$$$")}`);
      } else if (given["required"] !== false) missing.push(`env_file ${name}`);
    }
    if (found.length === 0) return service;
    return mergedService({ environment: found }, service);
  }
}

interface Extending {
  readonly project: Project;
  readonly siblings: Document;
  readonly missing: string[];
  readonly depth: number;
}

function mergedServices(one: Document, other: Document): Document {
  const all = Object.entries(other).map(([name, service]): [string, unknown] => {
    const known = one[name];
    return [
      name,
      isDocument(known) && isDocument(service) ? mergedService(known, service) : service,
    ];
  });
  return { ...one, ...Object.fromEntries(all) };
}

/** As Compose merges: maps by key, lists one after the other, all else is replaced. */
function mergedService(base: Document, own: Document): Document {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(own)) {
    const known = base[name];
    if (name === "labels" || name === "environment")
      merged[name] = [...assignments(known), ...assignments(value)];
    else if (name === "deploy" && isDocument(known) && isDocument(value))
      merged[name] = mergedService(known, value);
    else if (["ports", "expose", "volumes", "configs"].includes(name) && Array.isArray(known))
      merged[name] = [
        ...(known as unknown[]),
        ...(Array.isArray(value) ? (value as unknown[]) : []),
      ];
    else merged[name] = value;
  }
  return merged;
}

/** `["a=b"]`, also of `{a: b}`; a later one replaces an earlier one. */
const assignments = (value: unknown): readonly string[] =>
  isDocument(value)
    ? Object.entries(value).map(([key, one]) => (one === null ? key : `${key}=${String(one)}`))
    : Array.isArray(value)
      ? value.map(String)
      : [];
