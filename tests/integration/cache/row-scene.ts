// Runs rows of HTTP caching on data planes in front of one origin; requests go to one data plane after the other.
import { expect } from "bun:test";
import { freePort, type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import {
  type Answer,
  type OriginConnection,
  type OriginRequest,
  startOrigin,
} from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { PluginStores } from "../../support/plugin-stores.ts";
import { type Answer as Received, exchange } from "../../support/raw-exchange.ts";
import type { RawOptions } from "../../support/raw-http.ts";
import { Clock } from "../plugins/cache-scene.ts";
import { type Lines, linesOf, type Row, type Section, type Step, type Verdict } from "./row.ts";

const DAY_MS = 86_400_000;

/** More than rows put the clock forward at once: the gateway may have read it before a request and after. */
const patient = {
  connect_timeout: DAY_MS,
  response_timeout: DAY_MS,
  read_timeout: DAY_MS,
  write_timeout: DAY_MS,
  retries: { count: 0 },
};

export interface RowScene {
  /** Throws where the row's verdicts do not hold. */
  run(section: Section, row: Row): Promise<void>;
  stop(): Promise<void>;
}

/** A data plane for each worker; a route with an instance of the plugin for each of the sections' settings. */
export async function startRowScene(
  sections: readonly Section[],
  workers: number,
): Promise<RowScene> {
  const clock = new Clock();
  const origin = startOrigin();
  const settings = [...new Set(sections.map(settingsOf))];
  // The port is part of the key, so that each worker listens on an address of its own instead.
  const port = freePort();
  const stores = new PluginStores();
  const planes: RunningDataPlane[] = [];
  for (let worker = 0; worker < workers; worker++)
    planes.push(
      await startDataPlane({
        stores,
        listener: { address: addressOf(worker), port },
        services: [{ name: "web", targets: [{ port: origin.port }], ...patient }],
        routes: settings.map((_, index) => ({
          name: `s${index}`,
          service_id: "web",
          paths: [`/s${index}`],
        })),
        plugins: settings.map((config, index) => ({
          name: "response-cache",
          label: `s${index}`,
          routeId: `s${index}`,
          config: JSON.parse(config),
        })),
      }),
    );
  let rows = 0;
  return {
    async run(section, [, ...steps]) {
      const base = `/s${settings.indexOf(settingsOf(section))}/r${rows++}`;
      const run = new RowRun(base, steps);
      origin.answer = (request, connection) => run.respond(request, connection);
      for (const index of steps.keys()) {
        await run.step(index, { hostname: addressOf(index % workers), port }, clock);
      }
    },
    async stop() {
      for (const plane of planes) await plane.stop();
      origin.stop();
    },
  };
}

const addressOf = (worker: number) => `127.0.0.${worker + 1}`;

const settingsOf = ({ settings = {} }: Section) => JSON.stringify(settings);

/** One row while it runs. */
class RowRun {
  readonly #base: string;
  readonly #steps: readonly Step[];
  #current = 0;
  /** What the origin saw during the current step. */
  #seen: { readonly request: OriginRequest; readonly status: number }[] = [];

  constructor(base: string, steps: readonly Step[]) {
    this.#base = base;
    this.#steps = steps;
  }

  /** The origin's response. */
  respond(request: OriginRequest, connection: OriginConnection): Answer {
    const step = this.#steps[this.#current];
    if (step === undefined || !request.target.startsWith(this.#base)) return "close";
    const isConditional = CONDITIONS.some((name) => request.header(name) !== null);
    const status = step.status ?? (step.is === "validated" && isConditional ? 304 : 200);
    this.#seen.push({ request, status: step.cut === "head" ? 502 : status });
    if (step.cut === "head") return "close";
    const response = responseOf(step, {
      status,
      body: bodyOf(step, this.#current),
      request,
    }).replaceAll("{path}", this.#base);
    if (step.cut === undefined) return response;
    connection.write(response.slice(0, -HALF));
    connection.end();
    return null;
  }

  async step(index: number, to: RawOptions, clock: Clock): Promise<void> {
    const step = this.#steps[index];
    if (step === undefined) return;
    this.#current = index;
    if (step.after !== undefined) clock.forward(step.after);
    const attempt = async () => {
      this.#seen = [];
      const response = await this.#send(step, to);
      expect(`step ${index + 1}: ${this.#verdictOf(response)}`).toBe(
        `step ${index + 1}: ${step.is}`,
      );
      return response;
    };
    // A refresh in the background ends at some time.
    const isAfterRefresh = this.#steps[index - 1]?.is === "stale";
    const response = isAfterRefresh ? await eventually(attempt) : await attempt();
    const isRefreshed = step.is === "stale" && (step.response ?? step.status) !== undefined;
    if (isRefreshed) await eventually(() => this.#seen.length > 0);
    checkResponse(step, response);
    if (step.upstream !== undefined) checkRequest(step.upstream, this.#seen[0]?.request);
  }

  async #send(step: Step, to: RawOptions): Promise<Received & { readonly interim: number[] }> {
    const { method = "GET", path = "", request } = step;
    const head = [
      `${method} ${this.#base}${path} HTTP/1.1`,
      "Host: cache.test",
      ...linesOf(request),
    ];
    const bytes = `${head.map(dated).join("\r\n")}\r\n\r\n`;
    const { answers, interim } = await exchange(bytes, { ...to, methods: [method] });
    const [answer] = answers;
    if (answer === undefined) throw new Error("the gateway has closed the connection");
    return { ...answer, interim: [...interim] };
  }

  #verdictOf({ body, header }: Received): Verdict {
    const [seen] = this.#seen;
    if (header("x-cache-status") === "STALE") {
      // A refresh in the background may have failed already.
      const isAtOnce = header("cache-status")?.includes("sluice; hit") === true;
      return !isAtOnce && seen !== undefined && seen.status >= 500 ? "stale-if-error" : "stale";
    }
    if (seen === undefined) return header("x-cache-status") === null ? "rejected" : "hit";
    if (seen.status === 304 && this.#steps[this.#current]?.is === "validated") return "validated";
    const wasEarlier = this.#steps
      .slice(0, this.#current)
      .some((step, index) => body !== "" && body === bodyOf(step, index));
    const isOwn = this.#steps.some(
      (step, index) => index === this.#current && body === bodyOf(step, index),
    );
    if (wasEarlier && !isOwn) throw new Error("an earlier response, though the origin was asked");
    return "miss";
  }
}

/** Bytes of the body that a cut response lacks. */
const HALF = 7;

const CONDITIONS = ["if-none-match", "if-modified-since"] as const;

const bodyOf = ({ body }: Step, index: number) => body ?? `body of step ${index + 1}`;

function responseOf(
  step: Step,
  by: { readonly status: number; readonly body: string; readonly request: OriginRequest },
): string {
  const { status, body, request } = by;
  const lines = linesOf(step.response);
  const hasNone = status === 204 || status === 304;
  const frames = lines.some((line) => /^(?:content-length|transfer-encoding):/i.test(line));
  const head = [
    `HTTP/1.1 ${status} Status`,
    ...(frames || hasNone ? [] : [`Content-Length: ${body.length}`]),
    ...lines,
  ];
  const content = hasNone || request.method === "HEAD" ? "" : body;
  const interim = step.interim === undefined ? "" : `${step.interim}\r\n\r\n`;
  return `${interim}${head.map(dated).join("\r\n")}\r\n\r\n${content}`;
}

/** HTTP dates in the place of `@seconds`. */
const dated = (line: string) =>
  line.replace(/@(-?\d+)/g, (_, seconds) =>
    new Date(Date.now() + Number(seconds) * 1000).toUTCString(),
  );

function checkResponse(
  { expect: wanted = {} }: Step,
  response: Received & { readonly interim: readonly number[] },
): void {
  const { status, has, lacks, body, interim } = wanted;
  if (status !== undefined) expect(response.status).toBe(status);
  if (body !== undefined) expect(response.body).toBe(body);
  if (interim !== undefined) expect(response.interim).toEqual(interim);
  checkFields({ has, lacks }, response.fields);
}

function checkRequest(
  { method, has, lacks }: NonNullable<Step["upstream"]>,
  request: OriginRequest | undefined,
): void {
  if (request === undefined) throw new Error("the origin saw no request");
  if (method !== undefined) expect(request.method).toBe(method);
  checkFields({ has, lacks }, request.fields);
}

function checkFields(
  { has, lacks }: { readonly has: Lines | undefined; readonly lacks: Lines | undefined },
  fields: readonly (readonly [name: string, value: string])[],
): void {
  const joined = (name: string) =>
    fields
      .filter(([known]) => known === name.toLowerCase())
      .map(([, value]) => value)
      .join(", ");
  for (const line of linesOf(has)) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const part = line.slice(colon + 1).trim();
    if (colon < 0) expect(fields.map(([known]) => known)).toContain(name.toLowerCase());
    else if (part.startsWith("~")) expect(joined(name)).toContain(part.slice(1));
    else if (name === "Age") checkAge(Number(part), joined(name));
    else expect(`${name}: ${joined(name)}`).toBe(dated(line));
  }
  for (const name of linesOf(lacks)) expect(`${name}: ${joined(name)}`).toBe(`${name}: `);
}

/** Tests take time. */
function checkAge(least: number, value: string): void {
  expect(Number(value)).toBeGreaterThanOrEqual(least);
  expect(Number(value)).toBeLessThanOrEqual(least + 5);
}
