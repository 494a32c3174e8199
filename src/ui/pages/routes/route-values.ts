// The fields of the form of a route, converted from and to the API's objects; renders nothing.
import type { Read, Write } from "../../api/resources.ts";
import { type PathMatch, pathMatchOf } from "./route-text.ts";

type Route = Read<"routes">;

export interface ValueMatch {
  readonly name: string;
  readonly op: "equals" | "regex" | "present" | "absent";
  readonly value: string;
}

/** The API's fields with every default filled in; strings are never null, as inputs require. */
export interface RouteValues extends Pick<
  Route,
  | "service_id"
  | "hosts"
  | "grpc_methods"
  | "exact_responses"
  | "grpc_idle_timeout"
  | "grpc_max_message_bytes"
  | "methods"
  | "headers"
  | "query"
  | "cookies"
  | "client_cidrs"
  | "protocols"
  | "listener_ids"
  | "priority"
  | "strip_path"
  | "prefix_rewrite"
  | "path_rewrite"
  | "preserve_host"
  | "https_redirect"
  | "timeouts"
  | "body_min_rate"
  | "retries"
  | "maintenance"
  | "websocket"
  | "enabled"
  | "tags"
  | "description"
> {
  readonly name: string;
  readonly paths: readonly PathMatch[];
}

export const newMethod: RouteValues["grpc_methods"][number] = { service: "", method: "" };
export const newPath: PathMatch = { type: "prefix", value: "" };
export const newCondition: ValueMatch = { name: "", op: "equals", value: "" };

/** The API's defaults, so that the form shows them. */
const defaults: RouteValues = {
  name: "",
  service_id: null,
  hosts: [],
  paths: [],
  grpc_methods: [],
  exact_responses: "off",
  grpc_idle_timeout: 0,
  grpc_max_message_bytes: 0,
  methods: [],
  headers: [],
  query: [],
  cookies: [],
  client_cidrs: [],
  protocols: ["http", "https"],
  listener_ids: [],
  priority: 0,
  strip_path: false,
  prefix_rewrite: null,
  path_rewrite: null,
  preserve_host: null,
  https_redirect: false,
  timeouts: {
    connect_timeout: null,
    response_timeout: null,
    read_timeout: null,
    write_timeout: null,
    request_timeout: null,
  },
  body_min_rate: null,
  retries: null,
  maintenance: null,
  websocket: true,
  enabled: true,
  tags: [],
  description: "",
};

export function toValues(route: Partial<Route>): RouteValues {
  const names = Object.keys(defaults) as (keyof RouteValues)[];
  const known = names.filter((name) => route[name] !== undefined && route[name] !== null);
  const own = Object.fromEntries(known.map((name) => [name, route[name]]));
  return { ...defaults, ...own, paths: (route.paths ?? []).map(pathMatchOf) };
}

export function toBody({ name, paths, ...values }: RouteValues): Write<"routes"> {
  return {
    ...values,
    name: name.trim() === "" ? null : name,
    prefix_rewrite: values.prefix_rewrite?.trim() ? values.prefix_rewrite.trim() : null,
    paths: paths.filter(({ value }) => value !== "").map((path) => ({ ...path })),
    grpc_methods: values.grpc_methods.filter(
      ({ service, method }) => `${service}${method}`.trim() !== "",
    ),
    headers: conditionsOf(values.headers),
    query: conditionsOf(values.query),
    cookies: conditionsOf(values.cookies),
  };
}

/** Rows without a name are unfinished. */
const conditionsOf = (conditions: readonly ValueMatch[]): ValueMatch[] =>
  conditions
    .filter(({ name }) => name !== "")
    .map(({ name, op, value }) => ({ name, op, value: hasValue(op) ? value : "" }));

/** Whether a condition compares with something. */
export const hasValue = (op: ValueMatch["op"]): boolean => op === "equals" || op === "regex";

const HOST = /^(\*|(\*\.)?[\p{L}\p{N}_-]+(\.[\p{L}\p{N}_-]+)*\.?|\[?[0-9a-f:.]+\]?)(:\d+)?$/iu;

/** A host name, or a wildcard for those below one. */
export const isHostPattern = (text: string): boolean => HOST.test(text);

function regexProblem(source: string): string | null {
  try {
    new RegExp(source);
    return null;
  } catch (error) {
    return error instanceof Error
      ? error.message.replace(/^Invalid regular expression: /, "")
      : "Not a valid regular expression";
  }
}

function pathProblem({ type, value }: PathMatch): string | null {
  if (value === "") return null;
  if (type === "regex") return regexProblem(value);
  if (!value.startsWith("/")) return "Must start with /";
  return /[?#\s]/.test(value) ? "Must not contain ? or #" : null;
}

const conditionProblem = (value: string, values: RouteValues, path: string): string | null => {
  const [list, index] = path.split(".");
  const row = values[list as "headers" | "query" | "cookies"][Number(index)];
  return row?.op === "regex" ? regexProblem(value) : null;
};

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value === "" || /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
      ? null
      : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  hosts: (hosts: string[]) => {
    const wrong = hosts.find((host) => !isHostPattern(host));
    return wrong === undefined
      ? null
      : `${wrong} is not a host name: enter shop.example.com or *.example.com, without https:// and path`;
  },
  paths: {
    value: (_: string, values: RouteValues, path: string) => {
      const row = values.paths[Number(path.split(".")[1])];
      return row === undefined ? null : pathProblem(row);
    },
  },
  grpc_methods: {
    service: (value: string) =>
      /^[\w.]*$/.test(value) ? null : "A full name such as helloworld.Greeter",
    method: (value: string) => (/^\w*$/.test(value) ? null : "A name such as SayHello"),
  },
  headers: { value: conditionProblem },
  query: { value: conditionProblem },
  cookies: { value: conditionProblem },
  protocols: (value: string[]) => (value.length === 0 ? "At least one" : null),
  prefix_rewrite: (value: string | null, { strip_path: isStripped }: RouteValues) => {
    if (value === null || value.trim() === "") return null;
    if (isStripped) return "Cannot be combined with Strip the path";
    return pathProblem({ type: "prefix", value: value.trim() });
  },
  path_rewrite: {
    regex: (value: string | undefined) => (value === undefined ? null : regexProblem(value)),
  },
};
