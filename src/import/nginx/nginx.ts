// Converts a configuration of nginx; knows only its outermost blocks.
import { ApiError } from "../../model/error.ts";
import type { ConversionContext } from "../convert.ts";
import type { Output } from "../output.ts";
import { decodeText } from "../transfer/source.ts";
import { isWithoutEffect } from "./conditions.ts";
import { elsewhere, isHarmlessInclude, kindOf } from "./directives.ts";
import { dumpedFiles, noFiles } from "./dump.ts";
import { mapOf } from "./maps.ts";
import { addServers } from "./servers.ts";
import { addStreams } from "./streams.ts";
import { type Directive, Level, readTree, shownPlace, type SourceFiles } from "./tree.ts";
import { readUpstreams, type Upstream } from "./upstreams.ts";
import type { User } from "./users.ts";

export interface NginxContext {
  readonly output: Output;
  readonly files: SourceFiles;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** By targets and settings. */
  readonly services: Map<string, string>;
  /** By address. */
  readonly listeners: Map<string, string>;
  /** By path of the file. */
  readonly users: Map<string, readonly User[]>;
  /** Paths of certificates that were read. */
  readonly certificates: Set<string>;
}

/** Throws a 400 with line and column for an invalid configuration. */
export async function convertNginx(
  bytes: Uint8Array,
  output: Output,
  { files: present = null }: Pick<ConversionContext, "files">,
): Promise<void> {
  const text = decodeText(bytes);
  const dumped = dumpedFiles(text, present);
  const files = dumped?.files ?? present ?? noFiles;
  const root = readTree(dumped?.text ?? text, dumped?.name ?? "", files);
  const outer = { block: root, place: { file: "", line: 1, column: 1 } };
  const blocks = root.filter(({ name }) => name === "http");
  const whole: Directive[] = blocks.flatMap(({ block }) => block ?? []);
  // A file of sites-available has no block http.
  const isBare = blocks.length === 0 && root.some(({ name }) => name === "server");
  const http = new Level(isBare ? outer : { block: whole, place: outer.place }, null);
  const streams = root.filter(({ name }) => name === "stream");
  if (http.own("server").length === 0 && streams.length === 0)
    throw new ApiError(400, `the configuration has no block "server"${hintOf(root)}`);
  const context: NginxContext = {
    output,
    files,
    upstreams: readUpstreams(http.block, output.report),
    services: new Map(),
    listeners: new Map(),
    users: new Map(),
    certificates: new Set(),
  };
  reportRest(root, http, output);
  await addServers(http, context);
  for (const stream of streams) addStreams(new Level(stream, null), context);
}

const hintOf = (root: readonly Directive[]): string =>
  JSON.stringify(root.map((each) => [each, ...(each.block ?? [])])).includes('"include"')
    ? ": import the output of `nginx -T`, which contains the included files"
    : "";

/** Directives without an equivalent in services and routes, each kind in one line. */
function reportRest(root: readonly Directive[], http: Level, { report }: Output): void {
  const places = new Map<string, string[]>();
  const harmless = new Set<string>();
  const walk = (block: readonly Directive[]) => {
    for (const { name, args, place, block: inner } of block) {
      if (name === "include" && !isHarmlessInclude(args[0] ?? ""))
        report.omitted(
          `include ${args[0]} at ${shownPlace(place)}`,
          "the file is not available, and may deny access: import the output of `nginx -T`",
        );
      else if (kindOf(name) === "elsewhere") {
        const known = places.get(name) ?? [];
        if (!known.includes(shownPlace(place))) known.push(shownPlace(place));
        places.set(name, known);
      } else if (kindOf(name) === "harmless") harmless.add(name);
      else if (kindOf(name) === "unknown")
        report.omitted(`${name} at ${shownPlace(place)}`, "the import does not support it");
      if (name === "if" && isWithoutEffect({ name, args, place, block: inner }))
        report.omitted(
          `if at ${shownPlace(place)}`,
          "conditions on headers and variables are not imported",
        );
      if (inner !== null && BLOCKS.has(name)) walk(inner);
    }
  };
  walk(http.block);
  for (const [name, all] of places)
    report.omitted(`${name} at ${shownPlaces(all)}`, elsewhere(name));
  if (harmless.size > 0)
    report.omitted("directives without an effect here", [...harmless].toSorted().join(", "));
  for (const { name, place } of root)
    if (name === "mail")
      report.omitted(`mail at ${shownPlace(place)}`, "use stream routes for mail servers");
  for (const { args, place } of http.own("map"))
    if (!/^\$(?:http_upgrade|connection_upgrade)$/.test(args[0] ?? ""))
      report.omitted(
        `map ${args.join(" ")} at ${shownPlace(place)}`,
        mapOf((args[1] ?? "").slice(1), http) === null ||
          !/^\$\{?(?:host|http_host|uri|document_uri|request_uri)\}?$/.test(args[0] ?? "")
          ? "variables of maps are not supported: what uses them is named"
          : "it applies in proxy_pass and in redirects of if: what else uses it is named",
      );
}

const BLOCKS = new Set(["server", "location", "if", "limit_except"]);

const shownPlaces = (all: readonly string[]): string =>
  all.length <= 3 ? all.join(", ") : `${all.slice(0, 3).join(", ")} and ${all.length - 3} more`;
