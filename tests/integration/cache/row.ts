// The form of a row: a rule of HTTP caching as requests, origin's responses and verdicts; knows no gateway.

/** `Name: value`, one line each. In values `@60` is the HTTP date 60 seconds from now, `@-60` one minute ago. */
export type Lines = string | readonly string[];

/**
 * What a request must lead to:
 * - `hit`: a stored response, and the origin sees nothing;
 * - `miss`: the origin's response to this request;
 * - `validated`: a stored response that the origin's 304 has confirmed;
 * - `stale`: a stored response beyond its lifetime, which the gateway refreshes in the background;
 * - `stale-if-error`: a stored response in the place of the origin's error;
 * - `rejected`: 504 without a request to the origin.
 */
export type Verdict = "hit" | "miss" | "validated" | "stale" | "stale-if-error" | "rejected";

export interface Step {
  readonly is: Verdict;
  /** Seconds that pass before it. */
  readonly after?: number;
  /** Default: GET. */
  readonly method?: string;
  /** After the row's path. */
  readonly path?: string;
  /** Header lines of the request. */
  readonly request?: Lines;
  /** Header lines of the origin's response; `{path}` is the row's path. */
  readonly response?: Lines;
  /** The origin's; default: 200, and 304 where the verdict is `validated` and the request conditional. */
  readonly status?: number;
  /** The origin's; default: the number of the step. */
  readonly body?: string;
  /** Heads of interim responses before it. */
  readonly interim?: string;
  /** The origin ends the connection: before its response, or before the end of the body. */
  readonly cut?: "head" | "body";
  /** The response that the client gets. */
  readonly expect?: {
    readonly status?: number;
    /**
     * With these header lines; a line without a colon: present; a value that begins with `~`: contained. Age may be up to 5
     * more.
     */
    readonly has?: Lines;
    /** Without these headers. */
    readonly lacks?: Lines;
    readonly body?: string;
    readonly interim?: readonly number[];
  };
  /** The request that the origin sees. */
  readonly upstream?: {
    readonly method?: string;
    readonly has?: Lines;
    readonly lacks?: Lines;
  };
}

export type Row = readonly [name: string, ...steps: Step[]];

export interface Section {
  /** RFC and section. */
  readonly rule: string;
  /** Of the plugin; default: none. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Required by the RFC, or by the safety of other clients. */
  readonly must?: readonly Row[];
  /** Allowed by the RFC, and better than fetching again. */
  readonly better?: readonly Row[];
}

export const linesOf = (lines: Lines = []): readonly string[] =>
  typeof lines === "string" ? [lines] : lines;

type Rest = Omit<Step, "is">;

/** A fetch of this response. */
export const store = (response: Lines, rest: Omit<Rest, "response"> = {}): Step => ({
  response,
  is: "miss",
  ...rest,
});

export const hit = (rest: Rest = {}): Step => ({ is: "hit", ...rest });
export const miss = (rest: Rest = {}): Step => ({ is: "miss", ...rest });
export const validated = (rest: Rest = {}): Step => ({ is: "validated", ...rest });
export const stale = (rest: Rest = {}): Step => ({ is: "stale", ...rest });
export const staleIfError = (rest: Rest = {}): Step => ({ is: "stale-if-error", ...rest });
export const rejected = (rest: Rest = {}): Step => ({ is: "rejected", ...rest });

/** A response that the next request for it does not get. */
export const notReused = (name: string, ...response: readonly string[]): Row => [
  name,
  store(response),
  miss(),
];
