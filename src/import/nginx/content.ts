// Finds what a location responds with: a target, a fixed response, a redirect, or something that the gateway cannot serve.
import type { Document } from "../../control/body.ts";
import { readCondition } from "./conditions.ts";
import { FOREIGN_CONTENT } from "./directives.ts";
import { mapIn } from "./maps.ts";
import { type Destination, destinationOf } from "./proxy.ts";
import { type Rewrite, rewriteOf } from "./rewrites.ts";
import type { Report } from "../report.ts";
import { responseOf } from "./responses.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";

export type Content =
  | {
      readonly kind: "proxy";
      readonly destination: Destination;
      readonly pass: Directive;
      /** Where proxy_pass stands. */
      readonly level: Level;
      /** Null: the URI of the destination decides. */
      readonly rewrite: Rewrite | null;
    }
  | { readonly kind: "response"; readonly name: "respond" | "redirect"; readonly config: Document }
  | {
      readonly kind: "closed";
      readonly status: number;
      readonly why: string;
      /** Whether nginx denies these requests, too. */
      readonly isDenial: boolean;
    };

/** Conditions beside the path. */
export interface Conditions {
  readonly hosts?: readonly string[];
  readonly protocols?: readonly string[];
  readonly methods?: readonly string[];
  /** Conditions on the header Host. */
  readonly headers?: readonly Document[];
  /** An expression of nginx that the path must match as well. */
  readonly path?: string;
}

/** A response to some requests of a location, before its content. */
export interface Branch {
  readonly conditions: Conditions;
  readonly content: Content;
  readonly label: string;
  /** Another path, for which nginx selects a location again, instead of the content. */
  readonly rewrite?: Rewrite;
}

export interface Reading {
  readonly branches: readonly Branch[];
  /** Null: the next block decides, which is the case only for servers. */
  readonly content: Content | null;
  /** What may deny access and has no equivalent. */
  readonly lost: readonly string[];
  /** All others are denied; null: no method is. */
  readonly methods: readonly string[] | null;
}

const closed = (status: number, why: string, isDenial = false): Content => ({
  kind: "closed",
  status,
  why,
  isDenial,
});

export interface ContentOptions {
  readonly serverName: string | null;
  readonly named: ReadonlyMap<string, Level>;
  readonly hosts: HostSet;
  readonly report: Report;
}

/** The hosts of a server. */
export interface HostSet {
  readonly exact: readonly string[];
  /** Whether it has no others. */
  readonly isAll: boolean;
}

/** The content of a location. */
export function readLocationContent(level: Level, options: ContentOptions): Reading {
  if (level.nearest("internal").length > 0)
    return {
      branches: [],
      lost: [],
      methods: null,
      content: closed(404, "is only for internal requests", true),
    };
  const steps = readSteps(level, options);
  if (steps.content !== null) return steps;
  return { ...steps, content: handlerOf(level, options, steps.rewrite) };
}

/** The directives of a server that run before it selects a location. */
export function readServerContent(level: Level, options: ContentOptions): Reading {
  const steps = readSteps(level, options);
  if (steps.rewrite === null) return steps;
  const { what } = steps.rewrite;
  return { ...steps, lost: [...steps.lost, what] };
}

function handlerOf(level: Level, options: ContentOptions, rewrite: Rewrite | null): Content {
  const pass = level.own("proxy_pass").at(-1);
  const files = level.own("try_files").at(-1);
  if (pass !== undefined && files === undefined) {
    const destination = destinationOf(pass, level);
    return destination === null
      ? closed(
          503,
          `the target ${pass.args[0] ?? ""} depends on the request${mapIn(pass.args[0] ?? "", level)}`,
        )
      : { kind: "proxy", destination, pass, level, rewrite };
  }
  const foreign = level.block.find(({ name }) => Object.hasOwn(FOREIGN_CONTENT, name));
  if (foreign !== undefined)
    return closed(503, `this gateway does not support ${FOREIGN_CONTENT[foreign.name]}`);
  const fallback = files?.args.at(-1) ?? "";
  const named = options.named.get(fallback);
  if (named === undefined || rewrite !== null || pass !== undefined)
    return closed(503, "this gateway does not serve files: add a web server as a target");
  const inner = readLocationContent(named, { ...options, named: new Map() });
  // Only where the named location itself adds nothing.
  return inner.branches.length + inner.lost.length > 0 || inner.content === null
    ? closed(503, "this gateway does not serve files: add a web server as a target")
    : inner.content;
}

interface Steps extends Reading {
  /** Of a location, for its proxy_pass. */
  readonly rewrite: Rewrite | null;
}

/** Directives of nginx's rewrite module, which run in order and before all others. */
function readSteps(level: Level, options: ContentOptions): Steps {
  const branches: Branch[] = [];
  const lost: string[] = [];
  let rewrite: Rewrite | null = null;
  let methods: readonly string[] | null = null;
  for (const directive of level.block) {
    const label = `${directive.name} at ${shownPlace(directive.place)}`;
    if (directive.name === "return") {
      if (rewrite !== null) lost.push(label);
      return {
        branches,
        lost,
        methods,
        rewrite: null,
        content: responseOf(directive, level, options),
      };
    }
    const only = directive.name === "if" ? onlyMethods(directive) : null;
    if (only !== null) methods = only.filter((each) => methods?.includes(each) !== false);
    else if (directive.name === "if") {
      const read = readCondition(directive, level, options);
      if (read === null) lost.push(`if at ${shownPlace(directive.place)}`);
      else branches.push(...read);
    }
    if (directive.name !== "rewrite") continue;
    const found = rewriteOf(directive, level, options);
    if (found.kind === "lost" || rewrite !== null) {
      if (found.kind === "lost" && found.path !== null)
        branches.push({
          label,
          conditions: { path: found.path },
          content: closed(503, "the rewrite has no equivalent", true),
          ...(found.again === null ? {} : { rewrite: found.again }),
        });
      else lost.push(label);
    } else if (found.kind === "redirect")
      branches.push({ label, conditions: { path: found.path }, content: found.content });
    else rewrite = found;
  }
  return { branches, lost, methods, rewrite, content: null };
}

/** The methods of `if ($request_method !~ ^(GET|HEAD)$) { return 405; }`; null: it is something else. */
function onlyMethods({ args, block }: Directive): readonly string[] | null {
  const [, list] =
    /^\(?\s*\$\{?request_method\}?\s*!~\s*\^\(((?:[A-Z]+\|?)+)\)\$\s*\)?$/.exec(args.join(" ")) ??
    [];
  const [first, ...others] = block ?? [];
  const isDenial = first?.name === "return" && /^4\d\d$/.test(first.args[0] ?? "");
  return list === undefined || !isDenial || others.length > 0 ? null : list.split("|");
}
