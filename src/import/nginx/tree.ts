// Reads an nginx configuration with its includes as a tree of directives; knows no directive but `include`.
import { ApiError } from "../../model/error.ts";
import { isProxyParams } from "./directives.ts";
import { type Place, syntaxError, Tokens } from "./tokens.ts";

export interface Directive {
  readonly name: string;
  readonly args: readonly string[];
  /** Null: it ends with a semicolon. */
  readonly block: readonly Directive[] | null;
  readonly place: Place;
}

/** Files of the source, by the paths in its directives. Implementations decide what relative paths refer to. */
export interface SourceFiles {
  /** Paths that match the pattern of an include, in order; null: the files are not available. */
  match(pattern: string): readonly string[] | null;
  /** Null: it cannot be read. */
  read(path: string): string | null;
  /** The path as the report shows it. */
  shown(path: string): string;
}

/** As Debian's package brings it. */
const PROXY_PARAMS = `proxy_set_header Host $http_host; proxy_set_header X-Real-IP $remote_addr;
proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;`;

const MAX_DEPTH = 64;
const MAX_INCLUDES = 10_000;
const MAX_INCLUDE_DEPTH = 16;
const MAX_CHARACTERS = 67_108_864;
const MAX_DIRECTIVES = 1_000_000;

/** Includes that cannot be read stay as directives. Throws a 400 with the position of a syntax error. */
export function readTree(text: string, file: string, files: SourceFiles): readonly Directive[] {
  return new TreeReader(files).read(text, file, 0);
}

class TreeReader {
  readonly #files: SourceFiles;
  #includes = 0;
  #characters = 0;
  #directives = 0;

  constructor(files: SourceFiles) {
    this.#files = files;
  }

  read(text: string, file: string, includeDepth: number): readonly Directive[] {
    this.#characters += text.length;
    if (this.#characters > MAX_CHARACTERS)
      throw new ApiError(413, `the files are larger than ${MAX_CHARACTERS} characters together`);
    const tokens = new Tokens(text, file);
    return this.#block(tokens, { isInner: false, depth: 0, includeDepth });
  }

  #block(
    tokens: Tokens,
    at: { readonly isInner: boolean; readonly depth: number; readonly includeDepth: number },
  ): readonly Directive[] {
    const found: Directive[] = [];
    for (;;) {
      const first = tokens.next();
      if (first.kind === "end") {
        if (at.isInner) throw syntaxError('unexpected end of file, expecting "}"', first.place);
        return found;
      }
      if (first.kind === "}" && at.isInner) return found;
      if (first.kind !== "word") throw syntaxError(`unexpected "${first.kind}"`, first.place);
      const args: string[] = [];
      let token = tokens.next();
      for (; token.kind === "word"; token = tokens.next()) args.push(token.text);
      if (token.kind === "end" || token.kind === "}") {
        const what = token.kind === "end" ? "end of file" : '"}"';
        throw syntaxError(`unexpected ${what}, expecting ";" after "${shortened(first.text)}"`, {
          ...token.place,
        });
      }
      if (++this.#directives > MAX_DIRECTIVES)
        throw new ApiError(400, `the configuration has more than ${MAX_DIRECTIVES} directives`);
      const directive = { name: first.text, args, place: first.place };
      if (token.kind === ";") found.push(...this.#included(directive, at.includeDepth));
      else if (first.text.endsWith("_by_lua_block")) {
        tokens.skipLua(token.place);
        found.push({ ...directive, block: [] });
      } else {
        if (at.depth >= MAX_DEPTH)
          throw syntaxError(`is nested deeper than ${MAX_DEPTH}`, token.place);
        const block = this.#block(tokens, { ...at, isInner: true, depth: at.depth + 1 });
        found.push({ ...directive, block });
      }
    }
  }

  #included(directive: Omit<Directive, "block">, depth: number): readonly Directive[] {
    const whole = { ...directive, block: null };
    const [pattern] = directive.args;
    if (directive.name !== "include" || pattern === undefined) return [whole];
    const paths = this.#files.match(pattern);
    if (isProxyParams(pattern) && (paths ?? []).length === 0)
      return this.read(PROXY_PARAMS, "proxy_params", depth + 1);
    if (paths === null) return [whole];
    if (depth >= MAX_INCLUDE_DEPTH)
      throw syntaxError(`includes are nested deeper than ${MAX_INCLUDE_DEPTH}`, directive.place);
    return paths.flatMap((path) => {
      if (++this.#includes > MAX_INCLUDES)
        throw new ApiError(400, `the configuration has more than ${MAX_INCLUDES} includes`);
      const text = this.#files.read(path);
      if (text === null) return [{ ...whole, args: [path] }];
      return this.read(text, this.#files.shown(path), depth + 1);
    });
  }
}

const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}...` : text);

/** `site.conf:12` */
export const shownPlace = ({ file, line }: Place): string =>
  `${file === "" ? "nginx.conf" : file}:${line}`;

/** The directives of one block, with those of the blocks around it. */
export class Level {
  readonly block: readonly Directive[];
  readonly parent: Level | null;
  readonly place: Place;
  /** A block may have thousands of servers, and each of their locations looks for directives in it. */
  #byName: ReadonlyMap<string, readonly Directive[]> | null = null;

  constructor(directive: Pick<Directive, "block" | "place">, parent: Level | null) {
    this.block = directive.block ?? [];
    this.parent = parent;
    this.place = directive.place;
  }

  own(name: string): readonly Directive[] {
    this.#byName ??= Map.groupBy(this.block, (directive) => directive.name);
    return this.#byName.get(name) ?? [];
  }

  /** Of the innermost block that has any, as nginx inherits them. */
  nearest(name: string): readonly Directive[] {
    const own = this.own(name);
    return own.length > 0 || this.parent === null ? own : this.parent.nearest(name);
  }

  /** The last one of the innermost block. */
  last(name: string): Directive | null {
    return this.nearest(name).at(-1) ?? null;
  }

  /** The first argument of it. */
  value(name: string): string | null {
    return this.last(name)?.args[0] ?? null;
  }

  /** This block and those around it, the innermost first. */
  get chain(): readonly Level[] {
    return this.parent === null ? [this] : [this, ...this.parent.chain];
  }
}
