// A scripted Docker API on a unix socket: lists containers, streams events, and fails on request.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface FakeContainer {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Address in the network `bridge`; null: none. Default 127.0.0.1. */
  readonly address?: string | null;
  readonly network?: string;
  /** TCP ports that it exposes. */
  readonly ports?: readonly number[];
  /** Published port by exposed one. */
  readonly published?: Readonly<Record<number, number>>;
  readonly status?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly id?: string;
  /** Seconds since 1970; default: in the order of the first listing. */
  readonly created?: number;
  /** Default `running`. */
  readonly state?: string;
  /** Id of its image; default: one without labels. */
  readonly image?: string;
  /** Null: the API does not say. */
  readonly networkMode?: string | null;
}

/** What `GET /images/{id}/json` says. */
export interface FakeImage {
  readonly labels?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Engine {
  readonly name: "docker" | "podman";
  readonly most: string;
  readonly least: string;
}

const minorOf = (version: string) => Number(version.slice("1.".length));

export class DockerApi {
  readonly #directory = mkdtempSync(join(tmpdir(), "sluice-docker-"));
  readonly path = join(this.#directory, "docker.sock");
  readonly endpoint = `unix://${this.path}`;
  readonly #server: Bun.Server<undefined>;
  readonly #streams = new Set<ReadableStreamDefaultController<Uint8Array>>();
  #containers: FakeContainer[] = [];
  #past: { readonly second: number; readonly line: string }[] = [];
  /** Methods and paths of all requests. */
  readonly asked: string[] = [];
  /** Instead of an answer: a status, or `hang`. */
  failure: number | "hang" | null = null;
  /** Instead of the answer to the path without its version. */
  readonly scripted = new Map<string, () => Response | Promise<Response>>();
  /** What it speaks: `docs.docker.com/reference/api/engine`, and for Podman its `pkg/api/handlers`. */
  engine: Engine = { name: "docker", most: "1.48", least: "1.24" };
  /** By id; null: the API denies the request, as a socket proxy does. */
  images: Readonly<Record<string, FakeImage>> | null = {};
  #created = new Map<string, number>();

  constructor() {
    this.#server = Bun.serve({
      unix: this.path,
      // Streams of events are silent for long.
      ...({ idleTimeout: 0 } as object),
      fetch: (request) => this.#answer(request),
    });
  }

  async stop(): Promise<void> {
    this.breakOff();
    await this.#server.stop(true);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get containers(): readonly FakeContainer[] {
    return this.#containers;
  }

  /** Starts containers, and announces them. */
  run(...containers: FakeContainer[]): void {
    this.#containers.push(...containers);
    for (const container of containers) this.announce("start", container.name);
  }

  /** Ends a container, and announces it. */
  end(name: string): void {
    this.announce("die", name);
    this.#containers = this.#containers.filter((container) => container.name !== name);
  }

  /** Changes a container, and announces it as this action. */
  change(
    name: string,
    changes: Partial<FakeContainer>,
    action: string,
    attributes: Readonly<Record<string, string>> = {},
  ): void {
    this.#containers = this.#containers.map((container) =>
      container.name === name ? { ...container, ...changes } : container,
    );
    this.announce(action, name, attributes);
  }

  /** Gives a container another name, and announces it. */
  rename(name: string, next: string): void {
    const id = this.#containers.find((one) => one.name === name)?.id ?? idOf(name);
    const created = this.#created.get(name);
    if (created !== undefined) this.#created.set(next, created);
    this.#created.delete(name);
    this.change(name, { name: next, id }, "rename", { name: next, oldName: `/${name}` });
  }

  /** Lists the containers in another order from now on. */
  shuffle(random: () => number): void {
    const ranked = this.#containers.map((container) => ({ container, rank: random() }));
    this.#containers = ranked.toSorted((a, b) => a.rank - b.rank).map(({ container }) => container);
    const [first] = this.#containers;
    if (first !== undefined) this.announce("update", first.name);
  }

  announce(action: string, name: string, attributes: Readonly<Record<string, string>> = {}): void {
    const now = attributes["name"] ?? name;
    const id = this.#containers.find((one) => one.name === now)?.id ?? idOf(now);
    const Actor = { ID: id, Attributes: { name, ...attributes } };
    const time = Date.now();
    const event = { time: Math.floor(time / 1000), timeNano: time * 1e6 };
    const line = JSON.stringify({ Type: "container", Action: action, Actor, ...event });
    // The daemon remembers as many.
    this.#past = [...this.#past.slice(-255), { second: event.time, line }];
    for (const stream of this.#streams) stream.enqueue(new TextEncoder().encode(`${line}\n`));
  }

  /** Breaks off the streams of events, as a restart of the daemon does. */
  breakOff(): void {
    for (const stream of this.#streams) stream.close();
    this.#streams.clear();
  }

  get followers(): number {
    return this.#streams.size;
  }

  #answer(request: Request): Response | Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    this.asked.push(`${request.method} ${pathname}`);
    if (this.failure === "hang") return new Promise(() => {});
    if (this.failure !== null) return new Response("{}", { status: this.failure });
    const path = pathname.replace(/^\/v[\d.]+/, "");
    const scripted = this.scripted.get(path);
    if (scripted !== undefined) return scripted();
    if (path === "/version") return this.#version();
    const refusal = this.#refusalOf(/^\/v([\d.]+)/.exec(pathname)?.[1]);
    if (refusal !== null) return this.error(400, refusal);
    if (path === "/containers/json")
      return Response.json(this.#containers.map((container) => this.#listed(container)));
    if (path === "/events") return this.#events(searchParams.get("since"));
    const [, image] = /^\/images\/([^/]+)\/json$/.exec(path) ?? [];
    if (image !== undefined) return this.#image(decodeURIComponent(image));
    const [, id] = /^\/containers\/([^/]+)\/json$/.exec(path) ?? [];
    const found = this.#containers.find((one) => (one.id ?? idOf(one.name)) === id);
    if (found === undefined) return new Response("{}", { status: 404 });
    return Response.json({ Id: id, Config: { Env: linesOf(found.environment) } });
  }

  #image(id: string): Response {
    if (this.images === null) return new Response("Forbidden", { status: 403 });
    const { labels = null, environment } = this.images[id] ?? {};
    return Response.json({ Id: id, Config: { Labels: labels, Env: linesOf(environment) } });
  }

  /** Podman has three members: https://docs.podman.io/en/latest/_static/api.html */
  error(status: number, message: string): Response {
    const more = this.engine.name === "podman" ? { cause: message, response: status } : {};
    return Response.json({ message, ...more }, { status });
  }

  #version(): Response {
    const { name, most, least } = this.engine;
    const Details = { ApiVersion: most, MinAPIVersion: least, Os: "linux" };
    return Response.json({
      Platform: { Name: name === "podman" ? "linux/amd64/debian-13" : "Docker Engine - Community" },
      Components: [{ Name: name === "podman" ? "Podman Engine" : "Engine", Details }],
      Version: name === "podman" ? "5.4.2" : "29.0.0",
      ApiVersion: most,
      MinAPIVersion: least,
      Os: "linux",
    });
  }

  /** As the daemon's version middleware says it; Podman looks at the lower bound only. */
  #refusalOf(version = this.engine.most): string | null {
    const { name, most, least } = this.engine;
    if (minorOf(version) < minorOf(least))
      return `client version ${version} is too old. Minimum supported API version is ${least}, please upgrade your client to a newer version`;
    if (name === "docker" && minorOf(version) > minorOf(most))
      return `client version ${version} is too new. Maximum supported API version is ${most}`;
    return null;
  }

  #events(since: string | null): Response {
    const missed = this.#past.filter(({ second }) => since !== null && second >= Number(since));
    let own: ReadableStreamDefaultController<Uint8Array> | null = null;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        this.#streams.add(controller);
        // Sends the head of the response.
        controller.enqueue(
          new TextEncoder().encode(missed.map(({ line }) => `${line}\n`).join("") || "\n"),
        );
      },
      cancel: () => {
        if (own !== null) this.#streams.delete(own);
      },
    });
    return new Response(body, { headers: { "content-type": "application/json" } });
  }

  #listed({ name, labels = {}, address = "127.0.0.1", ports = [], ...rest }: FakeContainer) {
    const { published = {}, status = "Up 2 seconds", network = "bridge", id = idOf(name) } = rest;
    const { state = "running", image = "sha256:plain", networkMode = network } = rest;
    const created = rest.created ?? this.#created.get(name) ?? this.#created.size + 1_700_000_000;
    this.#created.set(name, created);
    return {
      Id: id,
      Names: [`/${name}`],
      Labels: labels,
      Created: created,
      ImageID: image,
      State: state,
      Status: status,
      Ports: ports.map((port) => ({
        PrivatePort: port,
        Type: "tcp",
        ...(published[port] === undefined ? {} : { IP: "0.0.0.0", PublicPort: published[port] }),
      })),
      NetworkSettings: { Networks: address === null ? {} : { [network]: { IPAddress: address } } },
      HostConfig: networkMode === null ? {} : { NetworkMode: networkMode },
    };
  }
}

const linesOf = (environment: Readonly<Record<string, string>> = {}): string[] =>
  Object.entries(environment).map(([name, value]) => `${name}=${value}`);

const idOf = (name: string): string => new Bun.CryptoHasher("sha256").update(name).digest("hex");
