// A plugin for tests of the plugin kit: it records its calls and does what its configuration says.
import { Type as t } from "@sinclair/typebox";
import { reject, reply } from "../../src/pdk/response.ts";
import type { BodyTransform, RequestContext } from "../../src/pdk/context.ts";
import {
  type AnyPlugin,
  definePlugin,
  httpScopes,
  phaseHandlers,
  type PhaseName,
} from "../../src/pdk/definition.ts";
import { config, flag, listOf } from "../../src/pdk/fields.ts";

/** Calls that probes recorded, in order: `a.pre_auth`, `a.log 200`. */
export class Trail {
  readonly steps: string[] = [];

  /** Returns the record and clears it. */
  take(): string[] {
    return this.steps.splice(0);
  }
}

/** A probe called `name` at that position in the execution order. */
export function probePlugin(
  trail: Trail,
  name: string,
  options: {
    readonly order?: number;
    readonly phases?: readonly PhaseName[];
    readonly allowsMultiple?: boolean;
    readonly onError?: "open" | "closed";
  } = {},
): AnyPlugin {
  const { order = 0, phases = ["pre_auth", "auth", "access", "request", "response", "log"] } =
    options;
  const words = (description: string) => listOf(t.String(), { description });
  return definePlugin({
    name,
    summary: "",
    description: "",
    group: "access",
    order,
    phases,
    scopes: httpScopes,
    onError: options.onError ?? "closed",
    ...(options.allowsMultiple === undefined ? {} : { allowsMultiple: options.allowsMultiple }),
    example: {},
    config: config({
      tag: t.String({ default: "", description: "Written down with each step" }),
      throws: words("Phases in which it fails"),
      rejects: words("Phases in which it refuses"),
      replies: words("Phases in which it answers"),
      slow: flag(false, "Whether it takes a turn of the event loop"),
      consumer: t.String({ default: "", description: "Consumer that auth recognises" }),
      body: t.String({ default: "", description: "upper, async, hold, count or replace" }),
    }),
    create(own) {
      const label = own.tag === "" ? name : `${name}(${own.tag})`;
      const act = (phase: string) => (context: RequestContext) => {
        trail.steps.push(`${label}.${phase}`);
        if (own.throws.includes(phase)) throw new Error("on demand");
        if (phase === "auth" && own.consumer !== "")
          context.authenticate(context.consumers.byUsername(own.consumer), {});
        if (own.rejects.includes(phase)) return reject(403, `${name}.no`, { detail: "no" });
        if (own.replies.includes(phase)) return reply(202, `${name}.yes`, { body: "own answer" });
        return undefined;
      };
      const handler = (phase: string) => {
        const run = act(phase);
        return own.slow
          ? (context: RequestContext) => Promise.resolve().then(() => run(context))
          : run;
      };
      const requestPhases = ["pre_auth", "auth", "access", "request"] as const;
      return {
        ...Object.fromEntries(
          requestPhases
            .filter((each) => phases.includes(each))
            .map((each) => [phaseHandlers[each], handler(each)]),
        ),
        ...(phases.includes("response")
          ? {
              response(_, answer) {
                trail.steps.push(`${label}.response ${answer.source} ${answer.status}`);
                if (own.throws.includes("response")) throw new Error("on demand");
                answer.headers.append("x-seen-by", label);
                const transform = transformOf(own.body, trail);
                if (transform !== null) answer.transformBody(transform);
                if (own.body === "replace") answer.replaceBody(Buffer.from("replaced"));
              },
            }
          : {}),
        ...(phases.includes("log")
          ? {
              log(context) {
                trail.steps.push(`${label}.log ${context.result?.status}`);
                if (own.throws.includes("log")) throw new Error("on demand");
              },
            }
          : {}),
        close: () => void trail.steps.push(`${label}.close`),
      };
    },
  });
}

function transformOf(kind: string, trail: Trail): BodyTransform | null {
  const upper = (chunk: Uint8Array) => Buffer.from(Buffer.from(chunk).toString().toUpperCase());
  switch (kind) {
    case "upper":
      return { push: upper, end: () => Buffer.from("!") };
    case "async":
      return {
        push: (chunk) => Promise.resolve(upper(chunk)),
        end: () => Promise.resolve(Buffer.from("!")),
        abort: () => void trail.steps.push("abort"),
      };
    case "hold": {
      const held: Buffer[] = [];
      return {
        push(chunk) {
          held.push(Buffer.from(chunk));
          return null;
        },
        end: () => Buffer.concat(held).reverse(),
      };
    }
    case "count": {
      let bytes = 0;
      return {
        isObserver: true,
        push(chunk) {
          bytes += chunk.byteLength;
          return chunk;
        },
        end() {
          trail.steps.push(`${bytes} bytes`);
          return null;
        },
      };
    }
    default:
      return null;
  }
}

/** A plugin called `probe` that gets the reasons noted for each request, after all other plugins. */
export const reasonsProbe = (take: (reasons: readonly string[]) => void): AnyPlugin =>
  definePlugin({
    name: "probe",
    summary: "Remembers what was noted",
    description: "",
    group: "observability",
    order: 9950,
    phases: ["log"],
    scopes: ["global"],
    config: config({}),
    example: {},
    onError: "open",
    create: () => ({
      log({ reasons }) {
        take([...reasons]);
      },
    }),
  });
