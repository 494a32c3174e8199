// A data plane with one route, an origin that records what reaches it, and the plugins that a test wants.
import {
  type DataPlaneChange,
  type DataPlaneSketch,
  type RunningDataPlane,
  startDataPlane,
} from "./data-plane.ts";

/** What reached the origin. */
export interface Seen {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SceneAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  /** Null: nothing reached the origin. */
  readonly seen: Seen | null;
}

export interface PluginScene {
  readonly plane: RunningDataPlane;
  /** Of the origin. */
  readonly originPort: number;
  /** Everything that reached the origin, in order. */
  readonly requests: readonly Seen[];
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<SceneAnswer>;
  send(
    method: string,
    path: string,
    options?: {
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: BodyInit | null;
    },
  ): Promise<SceneAnswer>;
  apply(change: DataPlaneChange): Promise<void>;
  stop(): Promise<void>;
}

type StartOptions = Parameters<typeof startDataPlane>[0];

/**
 * Starts it: service `web` with the origin, route `all` for everything. `answer` is the origin's response, 200 with "ok"
 * by default.
 */
export async function pluginScene(
  sketch: Partial<StartOptions> &
    DataPlaneSketch & { readonly answer?: (request: Request) => Response | Promise<Response> },
): Promise<PluginScene> {
  const requests: Seen[] = [];
  const { answer = () => new Response("ok"), ...rest } = sketch;
  const origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const copy = request.clone();
      requests.push({
        method: request.method,
        target: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: await copy.text(),
      });
      return answer(request);
    },
  });
  const originPort = origin.port ?? 0;
  const plane = await startDataPlane({
    services: [{ name: "web", targets: [{ port: originPort }] }],
    routes: [{ name: "all", service_id: "web" }],
    ...rest,
  });
  const send: PluginScene["send"] = async (method, path, options = {}) => {
    const before = requests.length;
    const response = await fetch(plane.url + path, {
      method,
      redirect: "manual",
      headers: { ...options.headers },
      ...(options.body === undefined ? {} : { body: options.body }),
    });
    const body = await response.text();
    const { status, headers } = response;
    return { status, headers, body, seen: requests[before] ?? null };
  };
  return {
    plane,
    originPort,
    requests,
    send,
    get: (path, headers = {}) => send("GET", path, { headers }),
    apply: (change) => plane.apply(change),
    async stop() {
      await plane.stop();
      await origin.stop(true);
    },
  };
}
