// script: handlers that users write in TypeScript, in a sandbox.
import { Type as t } from "@sinclair/typebox";
import type { RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import { config, integer } from "../pdk/fields.ts";
import { hostFunctions, type Scene } from "./script/host-functions.ts";
import { Sandbox } from "./script/sandbox.ts";
import { compileScript, type HandlerName } from "./script/source.ts";

const schema = config({
  source: t.String({
    minLength: 1,
    maxLength: 65_536,
    description: "TypeScript that exports onRequest, onResponse or onLog",
  }),
  memory_mb: integer(8, {
    minimum: 1,
    maximum: 256,
    description: "MiB that the script may use, in each worker",
  }),
  timeout_ms: integer(5, {
    minimum: 1,
    maximum: 1000,
    description:
      "Milliseconds that a handler may take; all other requests of the worker wait as long",
  }),
});

const example = `export function onRequest(request) {
  if (request.header("x-tenant") === null)
    return request.reject(400, "the tenant is missing", "tenant.missing");
  request.setHeader("X-Path-Length", String(request.path.length));
}

export function onResponse(request, response) {
  response.setHeader("X-Served-For", request.clientAddress);
}
`;

export default definePlugin({
  name: "script",
  summary: "Runs handlers that you write in TypeScript, in a sandbox",
  description: `For what no other plugin does. The script runs in an engine of its own (QuickJS, in WebAssembly) that has nothing of the
gateway but the objects below: no files, no network, no timers, no modules, no way to wait. Types are taken out, not checked.
Only admins may write or delete instances.

A script exports one or more of these functions:

| function | runs |
| --- | --- |
| \`onRequest(request)\` | before the request goes upstream, after authentication and limits |
| \`onResponse(request, response)\` | before the head of the answer goes to the client |
| \`onLog(request)\` | after the last byte |

| \`request\` | |
| --- | --- |
| \`id\`, \`method\`, \`scheme\`, \`host\`, \`path\`, \`query\`, \`clientAddress\`, \`country\` | facts; \`country\` may be null |
| \`route\`, \`service\` | names, or ids where there is no name; null: none |
| \`headers\`, \`header(name)\`, \`cookie(name)\`, \`queryValue(name)\` | what the client sent; null: not there |
| \`consumer\` | null, or \`{id, username, customId, groups}\` |
| \`groups\`, \`reasons\` | groups of the client; why plugins decided as they did |
| \`setHeader(name, value)\`, \`addHeader(name, value)\`, \`removeHeader(name)\` | fields that go upstream |
| \`setQuery(name, value)\`, \`setPath(path)\`, \`setMethod(method)\`, \`setHost(host)\` | the rest of what goes upstream; a value of null removes the parameter |
| \`reject(status, detail, reason)\` | refuses with the gateway's error page; the status is 400 to 599 |
| \`reply(status, {headers, body, reason})\` | answers with a text |
| \`note(reason)\`, \`log(message)\` | for the request log and the log of the gateway, there 10 lines for each handler at most |
| \`result\` | in \`onLog\`: \`{status, upstreamStatus, bytesIn, bytesOut, durationMs, ...}\` |

| \`response\` | |
| --- | --- |
| \`status\` | may be set, 200 to 599 |
| \`source\` | \`upstream\`, \`gateway\` or \`plugin\` |
| \`header(name)\`, \`setHeader(name, value)\`, \`addHeader(name, value)\`, \`removeHeader(name)\` | fields that go to the client |

The last \`reject\` or \`reply\` counts, also when the function goes on. What the gateway cannot send throws a TypeError in the script.
Variables outside of functions live as long as the script runs, in each worker apart; do not count on them.

What stands outside of functions runs when the instance is written, and has 250 milliseconds.
A handler that takes longer than \`timeout_ms\` is stopped, and one that needs more than \`memory_mb\` fails; then the script is started anew, and
its variables with it. A request whose handler failed is refused with 500 unless \`on_error\` is \`open\`. The clock is looked
at between the steps of a script, and each step may do no more than a fixed amount of work, some tens of milliseconds beyond
\`timeout_ms\`: a handler that is stopped in the middle of one, such as a calculation with very large numbers, costs the script its
engine, and its requests are refused until another one is there, within about a second. Each instance takes some
20 MB in every worker; a handler costs some 10 microseconds, and every use of \`request\` or \`response\` as much again. Time counts as that
of the worker's own thread, so that a busy machine stops nobody.`,
  group: "content",
  order: 3000,
  phases: ["request", "response", "log"],
  scopes: httpScopes,
  config: schema,
  example: { source: example },
  onError: "closed",
  needsAdmin: true,
  check({ source }) {
    const { problem } = compileScript(source);
    return problem === null ? [] : [{ path: "source", message: problem }];
  },
  async create(own, kit): Promise<PluginHandlers> {
    const { code, problem } = compileScript(own.source);
    if (code === null) throw new Error(`source ${problem}`);
    let scene: Scene | null = null;
    const current = (): Scene => {
      if (scene === null) throw new TypeError("there is no request");
      return scene;
    };
    const sandbox = await Sandbox.start({
      code,
      memoryMb: own.memory_mb,
      timeoutMs: own.timeout_ms,
      functions: hostFunctions(current, kit),
    });
    const handle = (
      name: HandlerName,
      context: RequestContext,
      response: ResponseDraft | null = null,
    ) => {
      const run: Scene = {
        context,
        response,
        isOpen: name === "onRequest",
        answer: undefined,
        logged: 0,
        isTouched: false,
      };
      scene = run;
      try {
        sandbox.run(name, () => !run.isTouched);
      } finally {
        scene = null;
      }
      return run.answer;
    };
    return {
      ...(sandbox.has("onRequest") && { request: (context) => handle("onRequest", context) }),
      ...(sandbox.has("onResponse") && {
        response: (context, response) => void handle("onResponse", context, response),
      }),
      ...(sandbox.has("onLog") && { log: (context) => void handle("onLog", context) }),
      close: () => sandbox.close(),
    };
  },
});
