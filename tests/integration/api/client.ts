// One gateway for a test file and short calls to its management API.
import { afterAll, beforeAll } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  readonly body: any;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Sent unchanged. */
  readonly raw?: BodyInit;
  readonly headers?: Record<string, string>;
}

export interface Client {
  readonly url: string;
  readonly port: number;
  readonly gateway: Gateway;
  /** Sends `METHOD /path`, the path relative to /api/v1. */
  call(line: string, options?: CallOptions): Promise<Answer>;
  /** The same with the whole path. */
  callRoot(line: string, options?: CallOptions): Promise<Answer>;
  /** Creates an object and returns it; throws when it is rejected. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  create(path: string, body: unknown): Promise<any>;
}

/** Starts a gateway before the tests of the file and ends it after them. */
export function useGateway(): Client {
  let gateway: Gateway | null = null;
  beforeAll(async () => {
    gateway = await startGateway({ workers: 2 });
  });
  afterAll(async () => {
    await gateway?.stop();
  });
  const running = () => {
    if (gateway === null) throw new Error("the gateway does not run yet");
    return gateway;
  };
  const callRoot = (line: string, options: CallOptions = {}) =>
    send(running().admin, line, options);
  const call = (line: string, options: CallOptions = {}) =>
    callRoot(line.replace(" ", " /api/v1"), options);
  return {
    get url() {
      return running().admin;
    },
    get port() {
      return Number(new URL(running().admin).port);
    },
    get gateway() {
      return running();
    },
    call,
    callRoot,
    async create(path, body) {
      const answer = await call(`POST ${path}`, { body });
      if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body;
    },
  };
}

async function send(url: string, line: string, options: CallOptions): Promise<Answer> {
  const [method = "GET", path = "/"] = line.split(/ (.*)/s);
  const body =
    options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: "manual",
    headers: { ...type, ...options.headers },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") ?? false;
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== "" ? JSON.parse(text) : text,
  };
}
