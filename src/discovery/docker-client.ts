// Reads containers and their events from Docker's API, 1.41 and later, which Podman offers as well; writes nothing.
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Discovery } from "../model/discovery.ts";

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
}

/** What came with an image. */
export interface ImageFacts {
  readonly labels: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
}

/** A reason that a person can act on. */
export class DockerError extends Error {}

const API = "/v1.41";
/** The end of the path of one container. */
const ONE = "/json";
const ANSWER_MS = 10_000;
const MAX_ANSWER = 64 * 1024 * 1024;
const MAX_LINE = 1024 * 1024;

export type DockerEndpoint = Pick<Discovery["docker"], "endpoint" | "cert_path">;

export class DockerClient {
  readonly #endpoint: string;
  readonly #base: string;
  readonly #options: RequestInit & { readonly unix?: string };

  /** Throws a DockerError when the certificates cannot be read. */
  constructor({ endpoint, cert_path }: DockerEndpoint) {
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
    return found as readonly ListedContainer[];
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

  /** Calls `onEvent` for each event that may change what is served, until the connection ends or `signal` is aborted. */
  async follow(
    onEvent: (event: ContainerEvent) => void,
    { signal, onOpen }: { readonly signal: AbortSignal; readonly onOpen: () => void },
  ): Promise<void> {
    const response = await this.#get("/events", { filters: { type: ["container"] } }, signal);
    if (response.body === null) return;
    onOpen();
    let rest = "";
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      rest += chunk;
      if (rest.length > MAX_LINE) throw new DockerError("an event of the API is longer than 1 MB");
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const event = eventIn(line);
        if (event !== null) onEvent(event);
      }
    }
  }

  /** Null for what is gone. */
  async #json(path: string, query: object): Promise<unknown> {
    const response = await this.#get(path, query, AbortSignal.timeout(ANSWER_MS));
    if (!response.ok) return null;
    const bytes = await response.arrayBuffer().catch((error: unknown) => {
      throw this.#explained(error);
    });
    if (bytes.byteLength > MAX_ANSWER)
      throw new DockerError("the answer of the API is longer than 64 MB");
    try {
      return JSON.parse(new TextDecoder().decode(bytes));
    } catch (error) {
      throw new DockerError("the answer is no JSON: this is not Docker's API", { cause: error });
    }
  }

  async #get(path: string, query: object, signal: AbortSignal): Promise<Response> {
    const words = Object.entries(query).map(([name, value]) => [name, JSON.stringify(value)]);
    const search = words.length === 0 ? "" : `?${new URLSearchParams(words as [string, string][])}`;
    const response = await fetch(`${this.#base}${API}${path}${search}`, {
      ...this.#options,
      signal,
    }).catch((error: unknown) => {
      throw this.#explained(error);
    });
    const isGone = response.status === 404 && path.endsWith(ONE);
    const isDenied = response.status === 403 && path.startsWith("/images/");
    if (response.ok || isGone || isDenied) return response;
    await response.body?.cancel();
    const hint =
      response.status === 403
        ? ": the proxy in front of the socket must allow /containers and /events"
        : "";
    throw new DockerError(
      `${this.#endpoint} responded to GET ${path} with status ${response.status}${hint}`,
    );
  }

  #explained(error: unknown): DockerError {
    const { name, message } = error as Error;
    const socket = this.#options.unix;
    if (name === "TimeoutError")
      return new DockerError(`${this.#endpoint} does not respond within ${ANSWER_MS / 1000} s`);
    if (name === "AbortError") return new DockerError("ended");
    if (socket !== undefined && !existsSync(socket))
      return new DockerError(
        `there is no socket ${socket}: is Docker installed, and is the socket mounted into this container?`,
      );
    if (socket !== undefined && !mayOpen(socket))
      return new DockerError(
        `the gateway's user may not open ${socket}: add it to the group of the socket, or use a socket proxy`,
      );
    return new DockerError(`${this.#endpoint} cannot be reached: ${message}`);
  }
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
  /^(?:create|start|restart|die|stop|kill|pause|unpause|rename|update|destroy|health_status.*)$/;

/** Null for one that changes nothing; an unreadable one may change anything. */
function eventIn(line: string): ContainerEvent | null {
  if (line.trim() === "") return null;
  try {
    const { Action: action = "", Actor } = JSON.parse(line) as {
      readonly Action?: string;
      readonly Actor?: { readonly ID?: string };
    };
    return CHANGES.test(action) ? { action, id: Actor?.ID ?? "" } : null;
  } catch {
    return { action: "", id: "" };
  }
}

function certificatesIn(directory: string) {
  const read = (name: string) => {
    try {
      return readFileSync(join(directory, name), "utf8");
    } catch (error) {
      throw new DockerError(
        `${join(directory, name)} cannot be read: ${(error as Error).message}`,
        { cause: error },
      );
    }
  };
  return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
}
