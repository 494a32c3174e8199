// A data plane with response-cache before an origin whose responses a test changes.
import { pluginScene, type PluginScene, type SceneAnswer } from "../../support/plugin-scene.ts";

type Answerer = (request: Request) => Response | Promise<Response>;

export interface CacheScene {
  readonly scene: PluginScene;
  /** The origin's response from now on. */
  answer: Answerer;
  get: PluginScene["get"];
  send: PluginScene["send"];
  /** X-Cache-Status of one GET after the other. */
  words(
    path: string,
    headers?: Readonly<Record<string, string>>,
    count?: number,
  ): Promise<string[]>;
  /** Other settings, and nothing stored. */
  use(config: Record<string, unknown>): Promise<void>;
  /** The default settings and response. */
  reset(): Promise<void>;
  /** From another port of this machine. */
  serveFrom(port: number): Promise<void>;
}

export const wordOf = ({ headers }: SceneAnswer) => headers.get("x-cache-status") ?? "";

/** May be kept for a minute. */
export const fresh = (body: string, headers: Record<string, string> = {}) =>
  new Response(body, { headers: { "Cache-Control": "max-age=60", ...headers } });

const HOUR_MS = 3_600_000;

/** Fields of a service whose requests do not end when the clock is put forward while they are under way. */
const patient = {
  connect_timeout: HOUR_MS,
  response_timeout: HOUR_MS,
  read_timeout: HOUR_MS,
  retries: { per_try_timeout: HOUR_MS },
};

/** The clock that ages are measured with, which a test can put forward. It never goes back. */
export class Clock {
  readonly #real = performance.now.bind(performance);
  #ahead = 0;

  constructor() {
    performance.now = () => this.#real() + this.#ahead;
  }

  forward(seconds: number): void {
    this.#ahead += seconds * 1000;
  }
}

export async function cacheScene(
  config: Record<string, unknown> = {},
  sketch: Partial<Parameters<typeof pluginScene>[0]> = {},
): Promise<CacheScene> {
  const own: { answer: Answerer } = { answer: () => fresh("ok") };
  const scene = await pluginScene({
    plugins: [{ name: "response-cache", config }],
    ...sketch,
    answer: (request) => own.answer(request),
  });
  const use: CacheScene["use"] = (next) =>
    scene.apply({ plugins: [{ name: "response-cache", config: next }] });
  return {
    scene,
    get answer() {
      return own.answer;
    },
    set answer(next) {
      own.answer = next;
    },
    get: scene.get,
    send: scene.send,
    async words(path, headers = {}, count = 2) {
      const words: string[] = [];
      for (let at = 0; at < count; at++) words.push(wordOf(await scene.get(path, headers)));
      return words;
    },
    use,
    async reset() {
      own.answer = () => fresh("ok");
      await use({});
    },
    serveFrom: (port) =>
      scene.apply({ services: [{ name: "web", targets: [{ port }], ...patient }] }),
  };
}
