// Reads configuration files of Traefik, alone or those of a folder together; knows no kind of object.
import { type Document, isDocument } from "../../control/body.ts";
import { ApiError } from "../../model/error.ts";
import type { ConversionContext } from "../convert.ts";
import type { Output } from "../output.ts";
import { bytesIn, seemsToHave, traefikFiles } from "../set-up/set-up.ts";
import { type SourceTree, textIn } from "../set-up/tree.ts";
import { readVariables } from "../compose/variables.ts";
import { decodeSource, inFile, locateErrors, readText } from "../source-text.ts";
import { type SourceDocument, withoutText } from "../transfer/source.ts";
import { closedByConflicts, memberOf, mergeDynamic } from "./merge.ts";
import { staticMembers } from "./static.ts";
import { convertTraefik } from "./traefik.ts";

const DYNAMIC = ["http", "tcp", "udp", "tls"];

type Parsing = Pick<ConversionContext, "parseJson">;

/** Reads YAML, TOML or JSON; throws a 400 for anything else. */
export async function convertTraefikFile(
  bytes: Uint8Array,
  output: Output,
  { parseJson }: Parsing,
): Promise<void> {
  const text = filled(decodeSource(bytes), { path: "the file", variables: new Map(), output });
  const source = await parsed(new TextEncoder().encode(text), parseJson);
  await locateErrors(source, (value) => {
    if (!isDocument(value)) throw new ApiError(400, "the file has no configuration of Traefik");
    if (kindOf(value) === null)
      throw new ApiError(
        400,
        "the file has no configuration of Traefik: http, tcp, udp or entryPoints",
      );
    if (memberOf(value, "entryPoints") === null) warnOfEntryPoints(value, output);
    convertTraefik(value, output);
  });
}

/** The static and the dynamic files of a folder as one configuration. Throws a 400 that names the invalid file. */
export async function convertTraefikFiles(
  tree: SourceTree,
  output: Output,
  context: Parsing,
): Promise<void> {
  const { documents, statics } = await readFiles(traefikFiles(tree), tree, { output, context });
  if (documents.length + statics.length === 0)
    throw new ApiError(400, "there is no configuration of Traefik in the files");
  const { dynamic, conflicts } = mergeDynamic(documents);
  const fixed = oneStatic(statics, ["file"]);
  if (memberOf(fixed, "entryPoints") === null) warnOfEntryPoints(dynamic, output);
  for (const name of conflicts)
    output.report.omitted(name, "two files define it differently, and Traefik uses one of them");
  const closed = closedByConflicts(dynamic, conflicts);
  const whole = withUsers(dynamic, (path) => fileNamed(tree, path));
  convertTraefik({ ...fixed, ...whole }, output, { closed });
}

/** The only file of the folder with the name of a path in the container; null: there is none, or it is not sure which. */
function fileNamed(tree: SourceTree, path: string): string | null {
  const name = path.replace(/^.*\//, "");
  const found = tree.paths().filter((one) => one === name || one.endsWith(`/${name}`));
  const [first] = found;
  return first === undefined || found.length > 1 ? null : textIn(tree, first);
}

/** With the users of `basicAuth.usersFile` in the place of the path, where the file is there. */
export function withUsers(dynamic: Document, read: (path: string) => string | null): Document {
  const http = memberOf(dynamic, "http");
  const middlewares = memberOf(http, "middlewares");
  if (!isDocument(http) || !isDocument(middlewares)) return dynamic;
  const all = Object.entries(middlewares).map(([name, middleware]): [string, unknown] => {
    const basic = memberOf(middleware, "basicAuth");
    const path = memberOf(basic, "usersFile");
    const text = typeof path === "string" ? read(path) : null;
    if (!isDocument(basic) || text === null) return [name, middleware];
    const lines = text.split(/\r?\n/).map((line) => line.trim());
    const own = memberOf(basic, "users");
    const users = [
      ...(Array.isArray(own) ? (own as unknown[]) : typeof own === "string" ? own.split(",") : []),
      ...lines.filter((line) => line !== "" && !line.startsWith("#")),
    ];
    const rest = Object.entries(basic).filter(([key]) => !/^users(?:file)?$/i.test(key));
    return [name, { basicAuth: { ...Object.fromEntries(rest), users } }];
  });
  const others = Object.entries(http).filter(([key]) => key.toLowerCase() !== "middlewares");
  return {
    ...dynamic,
    http: { ...Object.fromEntries(others), middlewares: Object.fromEntries(all) },
  };
}

export interface TraefikFile {
  readonly path: string;
  readonly value: Document;
}

export interface TraefikFiles {
  /** Dynamic configurations. */
  readonly documents: readonly Document[];
  /** The static parts of files. */
  readonly statics: readonly TraefikFile[];
}

/** Divides files into static and dynamic configurations, and reports those that are neither. */
export async function readFiles(
  paths: readonly string[],
  tree: SourceTree,
  { output, context }: { readonly output: Output; readonly context: Parsing },
): Promise<TraefikFiles> {
  const documents: Document[] = [];
  const statics: TraefikFile[] = [];
  const variables = readVariables(textIn(tree, ".env") ?? "");
  for (const path of paths) {
    const given = readable(tree, path);
    if (given === null) {
      output.report.omitted(path, "this user may not read it, such as certificates of Traefik");
      continue;
    }
    const text = filled(decodeSource(given), { path, variables, output });
    if (isTemplate(text)) {
      output.report.omitted(path, TEMPLATE);
      continue;
    }
    const bytes = new TextEncoder().encode(text);
    const source = await inFile(path, () => parsed(bytes, context.parseJson)).catch(
      (error: unknown) => {
        if (!(error instanceof ApiError) || seemsToHave(text, MEMBERS)) throw error;
        return null;
      },
    );
    const value = source?.value;
    const kind = isDocument(value) ? kindOf(value) : null;
    if (!isDocument(value) || kind === null) {
      output.report.omitted(path, "it is no configuration of Traefik");
      continue;
    }
    const names = Object.keys(value);
    const isStatic = (name: string) => kindOfMember(name) !== "dynamic";
    const part = (wanted: boolean) =>
      Object.fromEntries(
        names.filter((name) => isStatic(name) === wanted).map((name) => [name, value[name]]),
      );
    if (names.some(isStatic)) statics.push({ path, value: part(true) });
    if (!names.every(isStatic)) documents.push(part(false));
  }
  return { documents, statics };
}

/** The text with the variables of its Go templates; reports those without a value, whose objects cannot be imported. */
function filled(
  text: string,
  {
    path,
    variables,
    output,
  }: {
    readonly path: string;
    readonly variables: ReadonlyMap<string, string>;
    readonly output: Output;
  },
): string {
  return text.replaceAll(
    /\{\{-?\s*env\s+["'`]([A-Za-z_]\w*)["'`]\s*-?\}\}/g,
    (action, name: string) => {
      const value = variables.get(name);
      if (value === undefined)
        output.report.omitted(
          `${action} in ${path}`,
          `a Go template of Traefik: write the value of ${name} in its place, or into a file .env beside it`,
        );
      // Valid in YAML and TOML, and neither a host nor an address.
      return value ?? `<env ${name}>`;
    },
  );
}

const TEMPLATE =
  "it is a Go template, which Traefik fills in: import the file that it makes, with the same name";

/** Actions of Go templates that stand alone in a line make no YAML. */
const isTemplate = (text: string): boolean => /^\s*\{\{[^}\n]*\}\}\s*$/m.test(text);

/** Without the providers whose configuration is read, too. Throws a 400 when two files have static configurations. */
export function oneStatic(statics: readonly TraefikFile[], read: readonly string[]): Document {
  const [first, second] = statics;
  if (first !== undefined && second !== undefined)
    throw new ApiError(
      400,
      `${first.path} and ${second.path} are both static configurations of Traefik: import a folder with one of them`,
    );
  const { providers, ...rest } = first?.value ?? {};
  const others = isDocument(providers)
    ? Object.entries(providers).filter(([name]) => !read.includes(name.toLowerCase()))
    : [];
  return others.length === 0 ? rest : { ...rest, providers: Object.fromEntries(others) };
}

async function parsed(
  bytes: Uint8Array,
  parseJson: ConversionContext["parseJson"],
): Promise<SourceDocument> {
  const text = decodeSource(bytes);
  if (isTemplate(text)) throw new ApiError(400, `the file cannot be read: ${TEMPLATE}`);
  return isToml(text) ? withoutText(parseToml(text)) : await readText(bytes, parseJson);
}

/** Null: the file may not be read. What it defines is missing, which closes what uses it. */
function readable(tree: SourceTree, path: string): Uint8Array | null {
  try {
    return bytesIn(tree, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") return null;
    throw error;
  }
}

/** By which a file is one of Traefik. */
const MEMBERS = [...DYNAMIC, "entryPoints", "certificatesResolvers", "providers"];

const staticNames = new Set([...staticMembers].map((name) => name.toLowerCase()));

function kindOfMember(name: string): "static" | "dynamic" | null {
  if (DYNAMIC.includes(name.toLowerCase())) return "dynamic";
  return staticNames.has(name.toLowerCase()) ? "static" : null;
}

/** Null: no configuration of Traefik. */
function kindOf(value: Document): "static" | "dynamic" | null {
  const kinds = Object.keys(value).map(kindOfMember);
  return kinds.find((kind) => kind === "dynamic") ?? kinds.find((kind) => kind !== null) ?? null;
}

/** An entry point may have middlewares for all of its routers, which deny access. */
export function warnOfEntryPoints(dynamic: Document, output: Output): void {
  const http = memberOf(dynamic, "http");
  const routers = isDocument(http) ? memberOf(http, "routers") : null;
  if (!isDocument(routers) || Object.keys(routers).length === 0) return;
  const names = Object.values(routers).flatMap((router) => {
    const used = isDocument(router) ? memberOf(router, "entryPoints") : null;
    return Array.isArray(used) ? used.map(String) : [];
  });
  const list = [...new Set(names)].join(", ");
  output.report.changed(
    list === "" ? "entry points" : `entry points ${list}`,
    "their static configuration is not in the files: middlewares that it sets for all routers, which may deny access, are missing. Import both together",
  );
}

/** A table or `name = value` in the first line that is not a comment. */
function isToml(text: string): boolean {
  const line = text.split(/\r?\n/).find((each) => /^\s*[^\s#]/.test(each)) ?? "";
  return /^\s*(?:\[+[\w."' -]+\]+\s*(?:#.*)?$|[\w."'-]+\s*=)/.test(line);
}

function parseToml(text: string): unknown {
  try {
    return Bun.TOML.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^TOML Parse error: /, "") : "";
    throw new ApiError(400, `the file is not valid TOML: ${why}`, { cause: error });
  }
}
