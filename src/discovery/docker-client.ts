// Reads containers and their events from Docker's API, 1.40 and later, which Podman offers as well; writes nothing.
import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { readText, reasonOf } from "../control/outgoing-request.ts";
import { readRegular } from "../control/trusted-file.ts";
import type { Discovery } from "../model/discovery.ts";
import { quote } from "../net/quote.ts";
import { chosenVersion, complainedVersion, FALLBACK } from "./docker-version.ts";
import type { Sighting } from "./renames.ts";

/** One entry of `GET /containers/json`: https://docs.docker.com/reference/api/engine/version/v1.41/#operation/ContainerList */
export interface ListedContainer {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Labels: Readonly<Record<string, string>> | null;
  readonly ImageID?: string;
  /** Seconds since the Unix epoch. */
  readonly Created: number;
  /** `running`, `paused`, `restarting`, … */
  readonly State: string;
  /** `Up 3 minutes (healthy)` */
  readonly Status: string;
  readonly Ports: readonly {
    readonly IP?: string;
    readonly PrivatePort: number;
    readonly PublicPort?: number;
    readonly Type: string;
  }[];
  readonly NetworkSettings?: {
    readonly Networks?: Readonly<
      Record<string, { readonly IPAddress?: string; readonly GlobalIPv6Address?: string }>
    >;
  };
  readonly HostConfig?: { readonly NetworkMode?: string };
}

export interface ContainerEvent {
  /** `start`, `kill`, `health_status: healthy`, … */
  readonly action: string;
  /** Of the container. */
  readonly id: string;
  /** Milliseconds since the Unix epoch by the API's clock; 0: it does not say. */
  readonly at: number;
  /** What the container is called; null: an event that cannot be read. */
  readonly sighting: Sighting | null;
}

/** What came with an image. */
export interface ImageFacts {
  readonly labels: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
}

/** A reason that a person can act on. */
export class DockerError extends Error {}

/** The end of the path of one container. */
const ONE = "/json";
const ANSWER_MS = 10_000;
const MAX_ANSWER = 64 * 1024 * 1024;
const MAX_ERROR = 64 * 1024;
const MAX_LINE = 1024 * 1024;

export type DockerEndpoint = Pick<Discovery["docker"], "endpoint" | "cert_path">;

export class DockerClient {
  readonly #endpoint: string;
  readonly #base: string;
  readonly #options: RequestInit & { readonly unix?: string };
  readonly #answerMs: number;
  /** `/v1.44`; null: not asked for yet. */
  #api: Promise<string> | null = null;

  /** Throws a DockerError when the certificates cannot be read. `answerMs`: for each response, except for later events. */
  constructor({ endpoint, cert_path }: DockerEndpoint, answerMs = ANSWER_MS) {
    this.#answerMs = answerMs;
    this.#endpoint = endpoint ?? "";
    const isSocket = this.#endpoint.startsWith("unix://");
    this.#base = isSocket
      ? "http://docker"
      : this.#endpoint.replace(/^tcp:/, cert_path === null ? "http:" : "https:").replace(/\/$/, "");
    const tls = cert_path === null ? {} : { tls: certificatesIn(cert_path) };
    this.#options = {
      ...(isSocket ? { unix: this.#endpoint.slice("unix://".length) } : tls),
      redirect: "error",
    };
  }

  /** Also those that are stopped. */
  async containers(): Promise<readonly ListedContainer[]> {
    const found = await this.#json("/containers/json", { all: true });
    if (!Array.isArray(found))
      throw new DockerError("the answer is no list of containers: this is not Docker's API");
    return found.map(listed);
  }

  /** The environment of a container, by name; null: it is gone. */
  async environment(id: string): Promise<Readonly<Record<string, string>> | null> {
    const found = (await this.#json(`/containers/${encodeURIComponent(id)}${ONE}`, {})) as {
      readonly Config?: { readonly Env?: readonly string[] | null };
    } | null;
    return found === null ? null : variablesOf(found.Config?.Env);
  }

  /** Null: it is gone, or the proxy in front of the socket denies the request. */
  async image(id: string): Promise<ImageFacts | null> {
    const found = (await this.#json(`/images/${encodeURIComponent(id)}${ONE}`, {})) as {
      readonly Config?: {
        readonly Labels?: Readonly<Record<string, string>> | null;
        readonly Env?: readonly string[] | null;
      } | null;
    } | null;
    if (found === null) return null;
    const { Labels: labels, Env: environment } = found.Config ?? {};
    return { labels: labels ?? {}, environment: variablesOf(environment) };
  }

  /**
   * Calls `onEvent` for each event that may change what is served, until the connection ends or `signal` is aborted. `since`: also
   * for those from this time on that the API remembers (Docker the last 256), in milliseconds of its clock; 0: for none.
   */
  async follow(
    onEvent: (event: ContainerEvent) => void,
    {
      signal,
      onOpen,
      since,
    }: { readonly signal: AbortSignal; readonly onOpen: () => void; readonly since: number },
  ): Promise<void> {
    const head = new AbortController();
    const timer = setTimeout(() => head.abort(late()), this.#answerMs);
    const both = AbortSignal.any([signal, head.signal]);
    const filters = { type: ["container"] };
    const query = since === 0 ? { filters } : { filters, since: Math.floor(since / 1000) };
    const response = await this.#get("/events", query, both).finally(() => clearTimeout(timer));
    if (response.body === null) return;
    onOpen();
    let rest = "";
    const decoder = new TextDecoder();
    const chunks = response.body[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await chunks.next().catch((error: unknown) => {
        throw this.#explained(error, "/events");
      });
      if (done === true) return;
      rest += decoder.decode(value, { stream: true });
      if (rest.length > MAX_LINE) throw new DockerError("an event of the API is longer than 1 MB");
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const event = eventIn(line);
        // Of the same second, but before.
        if (event !== null && (event.at === 0 || event.at >= since)) onEvent(event);
      }
    }
  }

  /** Null for what is gone. */
  async #json(path: string, query: object): Promise<unknown> {
    const response = await this.#get(path, query, AbortSignal.timeout(this.#answerMs));
    return response.ok ? await this.#parsed(response, path) : null;
  }

  async #parsed(response: Response, path: string): Promise<unknown> {
    const text = await readText(response, MAX_ANSWER).catch((error: unknown) => {
      throw this.#explained(error, path);
    });
    if (text === null) throw new DockerError("the answer of the API is longer than 64 MB");
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new DockerError(`the answer to GET ${path} is no JSON: this is not Docker's API`, {
        cause: error,
      });
    }
  }

  async #get(path: string, query: object, signal: AbortSignal): Promise<Response> {
    const words = Object.entries(query).map(([name, value]) => [name, JSON.stringify(value)]);
    const search = words.length === 0 ? "" : `?${new URLSearchParams(words as [string, string][])}`;
    for (let attempt = 1; ; attempt++) {
      const api = await this.#negotiated();
      const response = await this.#send(`${api}${path}${search}`, path, signal);
      const isGone = response.status === 404 && path.endsWith(ONE);
      const isDenied = response.status === 403 && path.startsWith("/images/");
      if (response.ok || isGone || isDenied) return response;
      const said = await this.#said(response, path);
      const other = response.status === 400 ? complainedVersion(said) : null;
      // The daemon was updated, or `/version` was denied.
      if (other === null || other === api || attempt > 1)
        throw this.#refused(response.status, path, said);
      this.#api = Promise.resolve(other);
    }
  }

  #negotiated(): Promise<string> {
    this.#api ??= this.#version().catch((error: unknown) => {
      this.#api = null;
      throw error;
    });
    return this.#api;
  }

  /** The highest version that both know. */
  async #version(): Promise<string> {
    const path = "/version";
    const response = await this.#send(path, path, AbortSignal.timeout(this.#answerMs));
    if (response.ok) {
      const chosen = chosenVersion(await this.#parsed(response, path));
      if (chosen.api === null) throw new DockerError(`${this.#endpoint} ${chosen.problem}`);
      return chosen.api;
    }
    const said = await this.#said(response, path);
    // A socket proxy may deny it.
    if (response.status === 403 || response.status === 404) return FALLBACK;
    throw this.#refused(response.status, path, said);
  }

  async #send(url: string, path: string, signal: AbortSignal): Promise<Response> {
    return await fetch(`${this.#base}${url}`, { ...this.#options, signal }).catch(
      (error: unknown) => {
        throw this.#explained(error, path);
      },
    );
  }

  /** The words of the daemon: `{"message":"…"}`, or a line of text of a proxy; empty for others, such as HTML. */
  async #said(response: Response, path: string): Promise<string> {
    const text = await readText(response, MAX_ERROR).catch((error: unknown) => {
      throw this.#explained(error, path);
    });
    try {
      const { message } = JSON.parse(text ?? "") as { readonly message?: unknown };
      return quote(message, []).trim();
    } catch {
      const isText = response.headers.get("content-type")?.startsWith("text/plain") === true;
      return isText ? quote(text?.trim(), []) : "";
    }
  }

  #refused(status: number, path: string, said: string): DockerError {
    const hint =
      status === 403
        ? ": the proxy in front of the socket must allow /containers, /events and /version"
        : "";
    const words = said === "" ? "" : ` (${said})`;
    return new DockerError(
      `${this.#endpoint} responded to GET ${path} with status ${status}${words}${hint}`,
    );
  }

  #explained(error: unknown, path: string): DockerError {
    const { name } = error as Error;
    const socket = this.#options.unix;
    const limits = { timeoutMs: this.#answerMs };
    const wrapped = (message: string) => new DockerError(message, { cause: error });
    if (error instanceof DockerError) return error;
    if (name === "TimeoutError")
      return wrapped(`${this.#endpoint}: GET ${path} ${reasonOf(error, limits)}`);
    if (name === "AbortError") return wrapped("ended");
    if (socket !== undefined && !existsSync(socket))
      return wrapped(
        `there is no socket ${socket}: is Docker installed, and is the socket mounted into this container?`,
      );
    if (socket !== undefined && !mayOpen(socket))
      return wrapped(
        `the gateway's user may not open ${socket}: add it to the group of the socket, or use a socket proxy`,
      );
    return wrapped(`${this.#endpoint}: GET ${path} failed: it ${reasonOf(error, limits)}`);
  }
}

const late = () => new DOMException("no response", "TimeoutError");

/** With the lists that Podman leaves out when they are empty. Throws a DockerError for what is no container. */
function listed(found: unknown): ListedContainer {
  const container = (found ?? {}) as Partial<ListedContainer>;
  const { Id, Names, Ports, Labels, State, Status } = container;
  if (typeof Id !== "string")
    throw new DockerError("the list has a container without an id: this is not Docker's API");
  return {
    ...(container as ListedContainer),
    Names: Array.isArray(Names) ? Names : [],
    Ports: Array.isArray(Ports) ? Ports : [],
    Labels: Labels ?? {},
    State: State ?? "",
    Status: Status ?? "",
  };
}

const variablesOf = (lines: readonly string[] | null = []): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (lines ?? []).map((line) => [
      line.slice(0, line.indexOf("=")),
      line.slice(line.indexOf("=") + 1),
    ]),
  );

function mayOpen(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const CHANGES =
  /^(?:create|start|restart|died?|stop|kill|pause|unpause|rename|update|destroy|remove|health_status.*)$/;

/** Null for one that changes nothing; an unreadable one may change anything. */
function eventIn(line: string): ContainerEvent | null {
  if (line.trim() === "") return null;
  try {
    const {
      Action: action = "",
      Actor,
      time = 0,
      timeNano = time * 1e9,
    } = JSON.parse(line) as {
      readonly Action?: string;
      readonly time?: number;
      readonly timeNano?: number;
      readonly Actor?: {
        readonly ID?: string;
        readonly Attributes?: { readonly name?: string; readonly oldName?: string };
      };
    };
    if (!CHANGES.test(action)) return null;
    const { ID: id = "", Attributes: { name, oldName } = {} } = Actor ?? {};
    const former = oldName === undefined ? {} : { formerName: oldName.replace(/^\//, "") };
    const at = Math.floor(timeNano / 1e6);
    return { action, id, at, sighting: name === undefined ? null : { id, name, ...former } };
  } catch {
    return { action: "", id: "", at: 0, sighting: null };
  }
}

function certificatesIn(directory: string) {
  const read = (name: string) => {
    const path = join(directory, name);
    try {
      return readRegular(path).toString("utf8");
    } catch (error) {
      throw new DockerError(`${path} cannot be read: ${(error as Error).message}`, {
        cause: error,
      });
    }
  };
  return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
}
