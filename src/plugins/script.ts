// script: runs handlers that users write in TypeScript, in a sandbox.
import { Type as t } from "@sinclair/typebox";
import type { RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import { config, integer } from "../pdk/fields.ts";
import { hostFunctions, type HandlerCall } from "./script/host-functions.ts";
import { Sandbox } from "./script/sandbox.ts";
import { compileScript, type HandlerName, readingTime } from "./script/source.ts";

const schema = config({
  source: t.String({
    minLength: 1,
    maxLength: 65_536,
    description: "TypeScript that exports onRequest, onResponse or onLog",
  }),
  memory_mb: integer(8, {
    minimum: 1,
    maximum: 256,
    description: "Memory of the script in MiB, per worker",
  }),
  timeout_ms: integer(5, {
    minimum: 1,
    maximum: 1000,
    description:
      "Time limit of a handler in milliseconds, during which all other requests of the worker wait",
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
  summary: "Runs your own TypeScript handlers in a sandbox",
  description: `For what no other plugin does. The script runs in its own engine (QuickJS, in WebAssembly) with access only to the objects below:
no files, no network, no timers, no modules, no promises. Types are removed, not checked.
Only admins may write or delete instances.

A script exports one or more of these functions:

| function | runs |
| --- | --- |
| \`onRequest(request)\` | before the request goes upstream, after authentication and limits |
| \`onResponse(request, response)\` | before the head of the response goes to the client |
| \`onLog(request)\` | after the last byte |

| \`request\` | |
| --- | --- |
| \`id\`, \`method\`, \`scheme\`, \`host\`, \`path\`, \`query\`, \`clientAddress\`, \`country\` | properties of the request; \`country\` may be null |
| \`route\`, \`service\` | names, or ids where there is no name; null: none |
| \`headers\`, \`header(name)\`, \`cookie(name)\`, \`queryValue(name)\` | what the client sent; null: absent |
| \`consumer\` | null, or \`{id, username, customId, groups}\` |
| \`groups\`, \`reasons\` | groups of the client; reasons of plugin decisions |
| \`setHeader(name, value)\`, \`addHeader(name, value)\`, \`removeHeader(name)\` | headers of the upstream request |
| \`setQuery(name, value)\`, \`setPath(path)\`, \`setMethod(method)\`, \`setHost(host)\` | the rest of the upstream request; a value of null removes the parameter |
| \`reject(status, detail, reason)\` | rejects the request with the gateway's error page; the status is 400 to 599 |
| \`reply(status, {headers, body, reason})\` | responds with a text |
| \`note(reason)\`, \`log(message)\` | for the request log and the gateway's log, the latter at most 10 lines per handler call |
| \`result\` | in \`onLog\`: \`{status, upstreamStatus, bytesIn, bytesOut, durationMs, ...}\` |

| \`response\` | |
| --- | --- |
| \`status\` | writable, 200 to 599 |
| \`source\` | \`upstream\`, \`gateway\` or \`plugin\` |
| \`header(name)\`, \`setHeader(name, value)\`, \`addHeader(name, value)\`, \`removeHeader(name)\` | headers of the response |

The last \`reject\` or \`reply\` counts, also when the function continues. Invalid values throw a TypeError in the script. Variables
outside of functions belong to one worker and live until the script restarts; do not rely on them.

Statements outside of functions run when the instance is written, for at most 250 milliseconds, in a thread of its own
before the workers run them. The number of \`<\` in a source, times its length, is at most 64 million. The gateway stops a handler that
takes longer than \`timeout_ms\`, and a handler that needs more than \`memory_mb\` fails; then the script restarts with new variables.
A request whose handler failed gets 500 unless \`on_error\` is \`open\`. The engine checks the time between the steps of a script,
and limits the work of a step to some tens of milliseconds beyond \`timeout_ms\`: stopping a handler inside of a step, such as a
calculation with very large numbers, discards the engine, and requests fail until there is another one, within about a second.
Each instance needs some 20 MB in every worker; a handler costs some 10 microseconds, and every use of \`request\` or \`response\` as
much again. Time is CPU time of the worker's thread, so that a busy machine stops no handler.`,
  group: "content",
  order: 3000,
  phases: ["request", "response", "log"],
  scopes: httpScopes,
  config: schema,
  example: { source: example },
  onError: "closed",
  needsAdmin: true,
  isTried: true,
  check({ source }) {
    const time = readingTime(source);
    // `create` reports the problem of such a source, in a thread of its own.
    if (time === "long") return [];
    const { problem } = time === "soon" ? compileScript(source) : time;
    return problem === null ? [] : [{ path: "source", message: problem }];
  },
  async create(own, kit): Promise<PluginHandlers> {
    const { code, problem } = compileScript(own.source);
    if (code === null) throw new Error(`source ${problem}`);
    let call: HandlerCall | null = null;
    const current = (): HandlerCall => {
      if (call === null) throw new TypeError("there is no request");
      return call;
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
      const run: HandlerCall = {
        context,
        response,
        isOpen: name === "onRequest",
        result: undefined,
        logged: 0,
        isTouched: false,
      };
      call = run;
      try {
        sandbox.run(name, () => !run.isTouched);
      } finally {
        call = null;
      }
      return run.result;
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
